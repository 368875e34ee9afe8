"""The demonstration with a real model on this machine: what it answers is its own, and not always clever."""

import importlib.util
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from acp_server.demo.play import Stage, perform
from acp_server.demo.show import plain
from acp_server.demo.story import Act
from acp_server.extras import installing, is_installed
from acp_server.pulling import pull
from runtime.errors import WholeturnError
from runtime.providers.local_models import DEFAULT_MODEL, KNOWN, models_dir, stored

WINDOW = 2048
BUDGET = 520
"""Tokens: what a dozen short turns do not fit in, and a slow machine still reads in seconds."""
SETTINGS = """\
[agents.default]
provider = "demo"
runtime_profile = "demo"
system_prompt = "You are a friendly helper. Answer in one or two short sentences."

[providers.demo]
kind = "local"
model = {model}
context_window = {window}
max_output_tokens = 60
options = {{ extra_body = {{ temperature = 0.3, repeat_penalty = 1.1, seed = 7 }} }}

[runtime_profiles.demo]
max_history_messages = 50
max_context_tokens = {budget}
max_tool_iterations = 2
trim_slack_ratio = 0.2
tools = ["list_dir"]
"""
PROMPTS = (
    "Hello! Who are you?",
    "Name three colours of the rainbow.",
    "Look into the folder with list_dir.",
    "Tell me something about the sea.",
    "And about mountains?",
    "Which animals live in a forest?",
    "How do I make a cup of tea?",
    "What should I read on a rainy day?",
    "Give me a good reason to get up early.",
    "Write one sentence about winter.",
    "Say it again with other words.",
    "What did I ask you first?",
)


def play_local(folder: Path) -> int:
    """The whole demonstration. Returns 0 when all of it went as it should. Raises WholeturnError."""
    if not is_installed("local", importlib.util.find_spec):
        raise WholeturnError(f"A model of its own needs one more package: {installing('local')}")
    model = stored(models_dir(os.environ), DEFAULT_MODEL)
    if not model.is_file():
        known = KNOWN[DEFAULT_MODEL]
        plain(f"Fetching the model once ({known.size // 1_000_000} MB, {known.licence}) ...")
        pull(known, model.parent)
    plain(f"wholeturn demo: the real server, a real model in its process ({KNOWN[DEFAULT_MODEL].about}).")
    plain(f"Its window has {WINDOW} tokens; the conversation may fill {BUDGET} of them.")
    acts = [Act(prompt, ()) for prompt in PROMPTS]
    return perform(partial(LocalStage, folder, acts=acts, model=model), len(acts), BUDGET)


class LocalStage(Stage):
    """The same stage with a server that runs the model itself."""

    def __init__(self, folder: Path, scratch: Path, acts: Sequence[Act], model: Path) -> None:
        self.model = model
        super().__init__(folder, scratch, acts)

    def settings(self, acts: Sequence[Act]) -> str:
        """The model and its small window; nothing depends on the acts."""
        return SETTINGS.format(model=json.dumps(str(self.model)), window=WINDOW, budget=BUDGET)
