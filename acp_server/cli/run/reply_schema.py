"""A reply that must be JSON of a given shape: how a model is asked for it, and whether it came."""

import json
import re
from typing import Any, ClassVar

from runtime.values.errors import WholeturnError
from runtime.values.file_access import reading

_MOST_BYTES = 64 * 1024
_LONGEST_REASON = 400
_WISH = "Answer with one JSON value that fits this JSON schema, and with nothing else"
_AGAIN = "Answer again, with one JSON value that fits it and with nothing else."
_FENCED = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


class ReplySchema:
    """A JSON schema for replies. Raises WholeturnError for one that is none."""

    TRIES_AGAIN: ClassVar = 2
    """How often a model is asked again."""

    def __init__(self, text: str) -> None:
        # Loaded here: it takes as long as the rest of a start.
        from jsonschema import Draft202012Validator, SchemaError

        try:
            schema = json.loads(text)
            Draft202012Validator.check_schema(schema)
        except (ValueError, RecursionError) as error:
            raise WholeturnError(f"--schema: this is no JSON: {error}") from None
        except SchemaError as error:
            raise WholeturnError(
                f"--schema: this is no JSON schema: {error.message[:_LONGEST_REASON]}"
            ) from None
        self._text = json.dumps(schema, ensure_ascii=False)
        self._validator: Any = Draft202012Validator(schema)

    @classmethod
    def read(cls, path: str) -> "ReplySchema":
        """The schema in a file. Raises WholeturnError."""
        try:
            with reading(path) as file:
                raw = file.read(_MOST_BYTES + 1)
            text = raw.decode()
        except OSError as error:
            raise WholeturnError(f"--schema: {path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise WholeturnError(f"--schema: {path} is no text") from None
        if len(raw) > _MOST_BYTES:
            raise WholeturnError(f"--schema: {path} is larger than {_MOST_BYTES} bytes")
        return cls(text)

    def asked(self, prompt: str) -> str:
        """The prompt with the wish for such a reply."""
        return f"{prompt}\n\n{_WISH}:\n{self._text}"

    def asked_again(self, reason: str) -> str:
        """What is said of a reply that does not fit."""
        return f"That does not fit the schema: {reason}\n{_AGAIN}"

    def judged(self, reply: str) -> tuple[object, str]:
        """The value and '', or None and why there is none. A fenced block around it is taken off."""
        from jsonschema.exceptions import best_match

        text = reply.strip()
        fenced = _FENCED.match(text)
        try:
            value = json.loads(fenced[1] if fenced else text)
        except (ValueError, RecursionError) as error:
            return None, f"it is no JSON ({error})"
        worst = best_match(self._validator.iter_errors(value))
        if worst is None:
            return value, ""
        return None, f"at {worst.json_path}: {worst.message}"[:_LONGEST_REASON]
