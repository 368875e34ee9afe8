"""Which strings on the wire are absolute paths. Knows no file system, not even the one it runs on."""

import re

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_UNC = re.compile(r"\\\\[^\\/]+[\\/][^\\/]+")


def is_absolute(path: str) -> bool:
    """True for `/x`, `C:\\x`, `C:/x` and `\\\\server\\share`; false for anything with a NUL in it."""
    if "\0" in path:
        return False
    return path.startswith("/") or bool(_DRIVE.match(path) or _UNC.match(path))
