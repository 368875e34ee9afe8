"""The sections of MCP servers to settings, and what is wrong between their keys. Pure."""

from collections.abc import Iterator, Mapping
from typing import cast

from acp_server.config.layers import Key, key_text, table
from acp_server.config.merge import Merged
from acp_server.config.models import path_of
from runtime.mcp.settings import CALL_TIMEOUT, CONNECT_TIMEOUT, McpSettings, ServerSettings, Tuning
from schemas.config import McpSection, McpServerSection

OF_WAY: Mapping[str, tuple[str, ...]] = {
    "command": ("args", "env", "pass_env", "cwd"),
    "url": ("type", "headers", "bearer_env"),
}
"""Keys that only a server by its command, or only one by its address, reads."""


def mcp_settings(merged: Merged) -> McpSettings:
    """All that the tree says of MCP. It must have passed `faults`."""
    shared = cast(McpSection, table(merged.tree, "mcp"))
    base = McpSettings()
    names = tuple(table(merged.tree, "mcp_servers"))
    sections = {name: cast(McpServerSection, table(merged.tree, "mcp_servers", name)) for name in names}
    return McpSettings(
        servers=tuple(
            _server(merged, name, section)
            for name, section in sections.items()
            if "command" in section or "url" in section
        ),
        tuning={name: _tuning(section) for name, section in sections.items()},
        first_turn_wait=shared.get("first_turn_wait", base.first_turn_wait),
        max_tools=shared.get("max_tools", base.max_tools),
        max_tool_tokens=shared.get("max_tool_tokens"),
    )


def _tuning(section: McpServerSection) -> Tuning:
    tools = section.get("tools")
    return Tuning(
        enabled=section.get("enabled", True),
        tools=None if tools is None else tuple(tools),
        connect_timeout=section.get("connect_timeout", CONNECT_TIMEOUT),
        call_timeout=section.get("call_timeout", CALL_TIMEOUT),
    )


def _server(merged: Merged, name: str, section: McpServerSection) -> ServerSettings:
    key: Key = ("mcp_servers", name, "cwd")
    return ServerSettings(
        name,
        section.get("type", "http") if "url" in section else "stdio",
        command=section.get("command", ""),
        args=tuple(section.get("args", ())),
        env=dict(section.get("env", {})),
        pass_env=tuple(section.get("pass_env", ())),
        cwd=path_of(merged, key, section["cwd"]) if "cwd" in section else "",
        url=section.get("url", ""),
        headers=dict(section.get("headers", {})),
        bearer_env=section.get("bearer_env", ""),
    )


def mcp_faults(merged: Merged) -> Iterator[str]:
    """What keeps a server from being used as it is written."""
    for name in table(merged.tree, "mcp_servers"):
        key: Key = ("mcp_servers", name)
        section = table(merged.tree, *key)
        if "command" in section and "url" in section:
            yield merged.says((*key, "url"), f"{key_text(key)} has a command and a url; it is reached by one")
            continue
        for way, words in OF_WAY.items():
            for word in words:
                if word in section and way not in section:
                    place = (*key, word)
                    yield merged.says(place, f"{key_text(place)} has no effect without {way}")
