"""`file:` URIs and paths, both ways, POSIX, Windows and UNC alike on every host. Touches no file system."""

import re
from urllib.parse import quote, unquote, urlsplit

_DRIVE_PATH = re.compile(r"[A-Za-z]:[\\/]")
_DRIVE_IN_URI = re.compile(r"/[A-Za-z]:(/|$)")


def path_from_uri(uri: str) -> str | None:
    """The path that a `file:` URI means, in the form of the system it is from; None for any other URI.

    `file:///C:/x` and `file:///c%3A/x` give `C:\\x` and `c:\\x`, `file://server/share` gives
    `\\\\server\\share`. A fragment (a line range, say) is left out.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme != "file" or not path.startswith("/") or "\0" in path:
        return None
    if parts.netloc not in ("", "localhost"):
        return "\\\\" + unquote(parts.netloc) + path.replace("/", "\\")
    if _DRIVE_IN_URI.match(path):
        return (path[1:] if len(path) > 3 else path[1:] + "/").replace("/", "\\")
    return path


def uri_from_path(path: str) -> str:
    """The `file:` URI of an absolute path. Raises ValueError for a relative one."""
    if path.startswith("\\\\"):
        return "file:" + quote(path.replace("\\", "/"))
    if _DRIVE_PATH.match(path):
        return "file:///" + path[:2] + quote(path[2:].replace("\\", "/"))
    if path.startswith("/"):
        # A second slash at the front would read as a host name.
        return "file://" + quote("/" + path.lstrip("/"))
    raise ValueError("not an absolute path")
