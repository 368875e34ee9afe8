"""Runs a Neovim configuration in a real Lua with stand-ins for the plugins; tells what they were given."""

from typing import Any

import lupa.lua51

STAND_INS = """
given = {}
local function keep(name)
  return { setup = function(options) given[name] = options end }
end
local modules = {
  ["codecompanion"] = keep("codecompanion"),
  ["avante"] = keep("avante"),
  ["codecompanion.adapters"] = {
    extend = function(base, changes)
      changes.__base = base
      return changes
    end,
  },
}
function require(name)
  return modules[name] or error("no module " .. name)
end
"""


def plugin_options(text: str, plugin: str) -> dict[str, Any]:
    """What `require(plugin).setup` was called with. An empty table is {}; functions can be called.

    Raises lupa's LuaError for a text that is no Lua.
    """
    lua = lupa.lua51.LuaRuntime(unpack_returned_tuples=True)
    lua.execute(STAND_INS)
    lua.execute(text)
    return dict(plain(lua.globals()["given"][plugin]))


def plain(value: Any) -> Any:
    """A table as a list when its keys are 1, 2 …, else as a dict."""
    if lupa.lua51.lua_type(value) != "table":
        return value
    pairs = dict(value.items())
    if pairs and list(pairs) == list(range(1, len(pairs) + 1)):
        return [plain(inner) for inner in pairs.values()]
    return {key: plain(inner) for key, inner in pairs.items()}
