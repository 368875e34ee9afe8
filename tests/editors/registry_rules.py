"""The rules of the ACP registry for an entry, as its FORMAT, CONTRIBUTING and AUTHENTICATION state them.

Written from those documents (agentclientprotocol/registry, November 2026), not copied from its programs. What
asks the network there, whether packages exist, is left out.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from typing import Any

REQUIRED = ("id", "name", "version", "description", "distribution")
TEXTS = (*REQUIRED[:4], "repository", "website", "license", "license_url", "icon")
KNOWN = (*TEXTS, "authors", "distribution")
WAYS = ("binary", "npx", "uvx")
PLATFORMS = {f"{system}-{cpu}" for system in ("darwin", "linux", "windows") for cpu in ("aarch64", "x86_64")}
TARGET_KEYS = {
    "package": {"package", "cmd", "args", "env"},
    "binary": {"archive", "cmd", "args", "env", "sha256"},
}
INSTALLERS = (".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage")
COLORS = ("currentcolor", "none", "inherit")
ICON_SIDE = 16
AUTH_TYPES = ("agent", "terminal")


def entry_faults(entry: Mapping[str, Any], folder: str) -> list[str]:
    """What the registry would refuse of an `agent.json` in a folder of that name."""
    found = [f"{key} is missing" for key in REQUIRED if key not in entry]
    found += [f"{key} is not known" for key in entry if key not in KNOWN]
    found += [f"{key} is no text" for key in TEXTS if key in entry and not _is_text(entry[key])]
    if found:
        return found
    if not re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"]):
        found.append("the id is not of small letters, digits and hyphens")
    if entry["id"] != folder:
        found.append("the id is not the folder's name")
    if not re.fullmatch(r"\d+\.\d+\.\d+", entry["version"]):
        found.append("the version is not x.y.z")
    return [*found, *_distribution(entry["distribution"], entry["version"])]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _distribution(given: Any, version: str) -> Iterator[str]:
    if not isinstance(given, Mapping) or not given:
        yield "there is no distribution"
        return
    yield from (f"{way} is no way of distribution" for way in given if way not in WAYS)
    for way in ("npx", "uvx"):
        if way in given:
            yield from _package(given[way], version)
    for platform, target in given.get("binary", {}).items():
        if platform not in PLATFORMS:
            yield f"{platform} is no platform"
        yield from _binary(target, version)


def _package(target: Mapping[str, Any], version: str) -> Iterator[str]:
    yield from _keys(target, "package", ("package",))
    name = str(target.get("package", ""))
    if "@latest" in name:
        yield "the package is the latest, whatever that is"
    stated = re.search(r"(?<=[\w\]])(?:==|@)(\d[\w.]*)$", name)
    if stated and stated[1] != version:
        yield f"the package is of version {stated[1]}"


def _binary(target: Mapping[str, Any], version: str) -> Iterator[str]:
    yield from _keys(target, "binary", ("archive", "cmd"))
    address = str(target.get("archive", ""))
    if address.lower().endswith(INSTALLERS):
        yield "the archive is an installer"
    if "/latest/" in address:
        yield "the archive is the latest, whatever that is"
    stated = re.search(r"/(?:download|releases)/v?(\d[\d.]*)/", address)
    if stated and stated[1] != version:
        yield f"the archive is of version {stated[1]}"


def _keys(target: Mapping[str, Any], kind: str, required: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{key} is missing" for key in required if not _is_text(target.get(key)))
    yield from (f"{key} is not known" for key in target if key not in TARGET_KEYS[kind])


def icon_faults(text: str) -> list[str]:
    """What the registry would refuse of an `icon.svg`."""
    if "<!--" in text:
        return ["it has comments"]
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return [f"it is no XML: {error}"]
    if _tag(root) != "svg":
        return ["it is no SVG"]
    view = root.get("viewBox", "").split()
    sides = [
        root.get(name) or (view[at] if len(view) == 4 else "") for name, at in (("width", 2), ("height", 3))
    ]
    found = [f"its size is {side or 'not stated'}" for side in sides if side != str(ICON_SIDE)]
    colors = [color for element in root.iter() for color in _colors(element)]
    found += [f"its color {color} is fixed" for color in colors if color.lower() not in COLORS]
    if not any(color.lower() == "currentcolor" for color in colors):
        found.append("it does not take the theme's color")
    return found


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _colors(element: ElementTree.Element) -> Iterator[str]:
    yield from (element.attrib[name].strip() for name in ("fill", "stroke") if name in element.attrib)
    css = element.get("style", "") + (element.text or "" if _tag(element) == "style" else "")
    yield from re.findall(r"\b(?:fill|stroke)\s*:\s*([^;}\s]+)", css)


def auth_faults(result: Mapping[str, Any]) -> list[str]:
    """What it would refuse of an answer to `initialize`. A way without a type is the agent's own."""
    types = [way.get("type", AUTH_TYPES[0]) for way in result.get("authMethods", [])]
    return [] if set(types) & set(AUTH_TYPES) else [f"no way to log in is of {AUTH_TYPES}: {types}"]
