"""Method name -> handler: all that a client that speaks ACP v2 is answered. Any other request is -32601."""

from collections.abc import Mapping

from acp_server.app import App
from acp_server.dispatch import Handler
from acp_server.methods import prompting as first_prompting
from acp_server.methods import sessions, setup
from acp_server.v2 import methods, prompting

METHODS: Mapping[str, Handler[App]] = {
    "initialize": setup.initialize,
    "auth/login": methods.login,
    "auth/logout": methods.logout,
    "session/new": methods.new,
    "session/resume": methods.resume,
    "session/list": methods.list_,
    "session/close": methods.close,
    "session/delete": sessions.delete,
    "session/set_config_option": methods.set_config_option,
    "session/prompt": prompting.prompt,
    "session/cancel": first_prompting.cancel,
}
