"""Plays the story: writes the script and the settings, starts the server, kills it once, goes on, reports.

The same stage plays with a real model on this machine; what that answers is its own, and not always clever.
"""

import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from acp_server.assembly.extras import installing, is_installed, pull
from acp_server.programs.demo.editor import Gone, Peer, Screen, Update, headline, plain, say, table, text_of
from acp_server.programs.demo.story import Act, find_files, make_story
from runtime.providers.local.model_files import DEFAULT_MODEL, KNOWN, models_dir, stored
from runtime.values.errors import WholeturnError

BUDGET = 1500
"""Tokens: small enough that a dozen turns over real files do not fit."""
KILL_AFTER = 12
"""Pieces of the answer that are shown before the process is killed."""

SETTINGS = """\
[agents.default]
provider = "demo"
runtime_profile = "demo"

[providers.demo]
kind = "scripted"
model = "scripted"
context_window = 8000
script = {script}

[runtime_profiles.demo]
max_history_messages = 50
max_context_tokens = {budget}
keep_tool_context_turns = 2
trim_slack_ratio = 0.2
"""


def play(folder: Path) -> int:
    """The whole demonstration in a folder. Returns 0 when all of it went as it should."""
    files = find_files(folder)
    if len(files) < 2:
        folder = Path(__file__).resolve().parents[2]
        plain("There are no text files to read here that fill a context; those of wholeturn serve.")
        files = find_files(folder)
    acts = make_story(files)
    plain("wholeturn demo: the real server, a scripted model, real files and tools. No key, no network.")
    plain(f"Folder: {folder}")
    return perform(partial(Stage, folder, acts=acts), len(acts), BUDGET)


def perform(make: Callable[..., "Stage"], prompts: int, budget: int) -> int:
    """Run a stage in a scratch folder and sum it up. make: takes `scratch`. Returns 0 when all went well."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wholeturn-demo-") as scratch:
        stage = make(scratch=Path(scratch))
        try:
            stage.run()
        except (Gone, RuntimeError) as error:
            plain(f"The demonstration broke off: {error}")
            return 1
        finally:
            stage.close()
    table(stage.screen.rows, budget)
    print(f"\nNotices: {stage.screen.notices}; prompts: {prompts}; {time.monotonic() - started:.1f} s.")
    plain("Every row that left the model's view was announced; all of it is still in the transcript.")
    return 0


class Stage:
    """The server of the moment and the screen. Each process gets the part of the script that is left."""

    def __init__(self, folder: Path, scratch: Path, acts: Sequence[Act]) -> None:
        self.folder = folder
        self.scratch = scratch
        self.acts = acts
        self.screen = Screen()
        self.session_id = ""
        self.peer = self._start(acts)

    def run(self) -> None:
        """All acts in order."""
        result = self.peer.call("session/new", {"cwd": str(self.folder), "mcpServers": []})
        self.session_id = str(result["sessionId"])
        for number, act in enumerate(self.acts):
            if act.kill:
                self._killed(act, self.acts[number + 1 :])
            else:
                self._turn(act)

    def close(self) -> None:
        """End the server."""
        self.peer.close()

    def _turn(self, act: Act) -> None:
        self.screen.begin(act.prompt)
        self.peer.on_update = self.screen.update
        result = self.peer.call("session/prompt", self._prompt(act))
        self.screen.end(str(result["stopReason"]))

    def _killed(self, act: Act, rest: Sequence[Act]) -> None:
        """The process dies in the middle of an answer; the next one goes on with the session."""
        self.screen.begin(act.prompt)
        self.peer.on_update = self._update_until_killed
        try:
            self.peer.call("session/prompt", self._prompt(act))
        except Gone:
            self.screen.end("killed")
        headline("kill -9, in the middle of that answer")
        self.peer = self._start(rest)
        self._load()

    def _update_until_killed(self, update: Update) -> None:
        self.screen.update(update)
        if self.screen.chunks == KILL_AFTER:
            self.peer.kill()

    def _load(self) -> None:
        replayed: list[Update] = []
        self.peer.on_update = replayed.append
        self.peer.call(
            "session/load", {"sessionId": self.session_id, "cwd": str(self.folder), "mcpServers": []}
        )
        prompts = sum(update["sessionUpdate"] == "user_message_chunk" for update in replayed)
        last = next(
            (text_of(u) for u in reversed(replayed) if u["sessionUpdate"] == "agent_message_chunk"), ""
        )
        say(
            f"A new process loads the session: {len(replayed)} updates, {prompts} prompts, the first one too."
        )
        say(f"The unfinished answer is there: “…{last.strip()[-48:]}”")

    def _prompt(self, act: Act) -> dict[str, object]:
        return {"sessionId": self.session_id, "prompt": [{"type": "text", "text": act.prompt}]}

    def settings(self, acts: Sequence[Act]) -> str:
        """The settings file of a server that has these acts before it."""
        script = self.scratch / "script.json"
        script.write_text(json.dumps({"replies": [reply for act in acts for reply in act.replies]}))
        return SETTINGS.format(script=json.dumps(str(script)), budget=BUDGET)

    def _start(self, acts: Sequence[Act]) -> Peer:
        settings = self.scratch / "demo.toml"
        settings.write_text(self.settings(acts))
        env = {name: value for name, value in os.environ.items() if not name.startswith("WHOLETURN_")}
        env |= {"WHOLETURN_DATA_DIR": str(self.scratch), "WHOLETURN_CONFIG_DIR": str(self.scratch)}
        peer = Peer(["--config", str(settings)], env, self.folder)
        peer.initialize()
        return peer


WINDOW = 2048
LOCAL_BUDGET = 520
"""Tokens: what a dozen short turns do not fit in, and a slow machine still reads in seconds."""
LOCAL_SETTINGS = """\
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
    plain(f"Its window has {WINDOW} tokens; the conversation may fill {LOCAL_BUDGET} of them.")
    acts = [Act(prompt, ()) for prompt in PROMPTS]
    return perform(partial(LocalStage, folder, acts=acts, model=model), len(acts), LOCAL_BUDGET)


class LocalStage(Stage):
    """The same stage with a server that runs the model itself."""

    def __init__(self, folder: Path, scratch: Path, acts: Sequence[Act], model: Path) -> None:
        self.model = model
        super().__init__(folder, scratch, acts)

    def settings(self, acts: Sequence[Act]) -> str:
        """The model and its small window; nothing depends on the acts."""
        return LOCAL_SETTINGS.format(model=json.dumps(str(self.model)), window=WINDOW, budget=LOCAL_BUDGET)
