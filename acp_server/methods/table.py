"""Method name -> handler: all that this agent answers. Every other request is -32601."""

from collections.abc import Mapping

from acp_server.app import App
from acp_server.dispatch import Handler
from acp_server.methods import modes, options, prompting, restoring, sessions, setup

METHODS: Mapping[str, Handler[App]] = {
    "initialize": setup.initialize,
    "authenticate": setup.authenticate,
    "session/new": sessions.new,
    "session/load": sessions.load,
    "session/resume": restoring.resume,
    "session/fork": restoring.fork,
    "session/list": sessions.list_,
    "session/close": sessions.close,
    "session/delete": sessions.delete,
    "session/set_config_option": options.set_config_option,
    "session/set_mode": modes.set_mode,
    "session/prompt": prompting.prompt,
    "session/cancel": prompting.cancel,
}
