"""What editors document of their configuration, as tables: which keys an agent may and must have there.

Read in the editors' documentation in November 2026: Zed's "External Agents" (agent_servers, type custom),
"Agent Client Protocol" of JetBrains AI Assistant (acp.json), "Configuring ACP Adapters" of CodeCompanion, the
README of avante.nvim (acp_providers), the docstrings of `agent-shell-make-agent-config` and of
`acp-make-client`, `toad acp --help`, and "Config" of acpx (the agents map).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Shape = type | tuple[type, ...]


@dataclass(frozen=True, slots=True)
class Format:
    """required, optional: key -> the type of its value."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape]

    def faults(self, given: Mapping[str, Any]) -> list[str]:
        """What is not as it is documented."""
        known = {**self.required, **self.optional}
        found = [f"{key} is missing" for key in self.required if key not in given]
        found += [f"{key} is no key" for key in given if key not in known]
        found += [
            f"{key} is a {type(value).__name__}"
            for key, value in given.items()
            if key in known and not isinstance(value, known[key])
        ]
        return found


ZED = Format(
    {"type": str, "command": str},
    {"args": list, "env": dict, "default_mode": str, "default_model": str, "favorite_models": list},
)
JETBRAINS_FILE = Format({"agent_servers": dict}, {"default_mcp_settings": dict})
JETBRAINS = Format(
    {"command": str}, {"args": list, "env": dict, "use_idea_mcp": bool, "use_custom_mcp": bool}
)
# An adapter that extends another one may change any part of it.
CODECOMPANION = Format(
    {"commands": dict, "__base": str},
    {
        "name": str,
        "formatted_name": str,
        "type": str,
        "roles": dict,
        "opts": dict,
        "defaults": dict,
        "env": dict,
        "parameters": dict,
        "handlers": dict,
    },
)
CODECOMPANION_DEFAULTS = Format(
    {}, {"auth_method": str, "mcpServers": (str, dict), "model": str, "timeout": int}
)
AVANTE = Format({"command": str}, {"args": (list, dict), "env": dict, "auth_method": str, "timeout": int})
AGENT_SHELL = Format(
    {":identifier": str, ":client-maker": list, ":buffer-name": str},
    {
        ":mode-line-name": str,
        ":welcome-function": str,
        ":shell-prompt": str,
        ":shell-prompt-regexp": str,
        ":needs-authentication": str,
        ":authenticate-request-maker": list,
        ":default-model-id": list,
        ":default-session-mode-id": list,
        ":icon-name": str,
        ":install-instructions": str,
    },
)
ACP_CLIENT = Format(
    {":command": str, ":context-buffer": str},
    {":command-params": (str, list), ":environment-variables": (str, list)},
)
TOAD_OPTIONS = ("--title", "-t", "--project-dir", "-d", "--port", "-p", "--host", "-H", "--serve", "-s")
ACPX_FILE = Format(
    {},
    {
        "agents": dict,
        "defaultAgent": str,
        "defaultPermissions": str,
        "nonInteractivePermissions": str,
        "authPolicy": str,
        "ttl": int,
        "timeout": int,
        "format": str,
        "mcpServers": list,
        "auth": dict,
    },
)
ACPX = Format({"argv": list}, {})
