"""What a session can be set to, in the words of ACP v2. Pure."""

from collections.abc import Mapping
from typing import cast


def in_v2(options: object) -> list[dict[str, object]]:
    """The first version's config options, with their ids under v2's name."""
    found = cast("list[Mapping[str, object]]", options)
    return [{"configId" if key == "id" else key: value for key, value in one.items()} for one in found]
