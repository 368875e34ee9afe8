"""A user's machine for one test: settings, a script for the model, a folder to work in, servers started."""

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.support.acp_schema import Edition
from tests.support.wire import PATIENCE, Agent, Handler, start_agent
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, greet
from tests.warm import Forker, cleared_away, output_of

SETTINGS = """\
[agents.default]
provider = "model"
runtime_profile = "mine"

[providers.model]
{provider}

[runtime_profiles.mine]
{profile}

[acp]
{acp}
"""
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "COVERAGE_PROCESS_START", "PYTHONPATH", "HAND_OPENED_LOG")


class Home:
    """Everything below one folder. `work`: of the sessions. `spawn`: where the editor starts the server.
    forker: what servers and commands are copied from, for tests that start very many.
    """

    def __init__(self, root: Path, forker: Forker | None = None) -> None:
        self.root = root
        self.forker = forker
        self.work = root / "work"
        self.spawn = root / "spawn"
        self.data = root / "data"
        self.log = root / "stderr.log"
        self.extra_env: dict[str, str] = {}
        for folder in (self.work, self.spawn, root / "config"):
            folder.mkdir()
        self.log.touch()

    def script(self, *replies: Json, **options: object) -> None:
        """What the scripted model says from now on (a server reads it with its first prompt)."""
        path = self.root / "script.json"
        path.write_text(json.dumps({"replies": list(replies), **options}))
        self.configure(f'kind = "scripted"\nmodel = "scripted"\nscript = {json.dumps(str(path))}')

    def model_at(self, base_url: str, **options: object) -> None:
        """The model is an OpenAI-compatible server."""
        more = "".join(f"{name} = {json.dumps(value)}\n" for name, value in options.items())
        self.configure(f'kind = "openai"\nmodel = "m"\nbase_url = {json.dumps(base_url)}\n{more}')

    def configure(self, provider: str | None = None, *, profile: str = "", acp: str = "") -> None:
        """Write the settings; what is not given stays."""
        kept = self._settings()
        given = {"provider": provider, "profile": profile or None, "acp": acp or None}
        kept |= {name: text for name, text in given.items() if text is not None}
        (self.root / "settings.json").write_text(json.dumps(kept))
        (self.root / "config" / "config.toml").write_text(SETTINGS.format(**kept))

    @property
    def provider(self) -> str:
        """The provider's section as it is now."""
        return self._settings()["provider"]

    def _settings(self) -> dict[str, str]:
        path = self.root / "settings.json"
        if path.exists():
            return dict(json.loads(path.read_text()))
        return {"provider": "", "profile": "", "acp": ""}

    @property
    def env(self) -> dict[str, str]:
        """The environment of everything that is started here."""
        kept = {name: value for name, value in os.environ.items() if name in KEPT}
        folders = {"WHOLETURN_CONFIG_DIR": self.root / "config", "WHOLETURN_DATA_DIR": self.data}
        return kept | {name: str(path) for name, path in folders.items()} | self.extra_env

    @asynccontextmanager
    async def start(
        self,
        *arguments: str,
        handlers: Mapping[str, Handler] | None = None,
        trim_exception: bool = True,
        edition: Edition = "schema-v1",
        command: Sequence[str] = (sys.executable, "-m", "acp_server"),
    ) -> AsyncIterator[Agent]:
        """A server that nobody has greeted yet."""
        async with start_agent(
            [*command, *arguments],
            cwd=self.spawn,
            env=self.env,
            log=self.log,
            handlers=handlers,
            trim_exception=trim_exception,
            edition=edition,
            forker=self.forker,
        ) as agent:
            yield agent

    async def command(self, *arguments: str) -> tuple[int, str]:
        """A command that runs in `work` to its end: its exit status, and what it says."""
        if self.forker is None:
            done = await trio.run_process(
                [sys.executable, "-m", "acp_server", *arguments],
                cwd=self.work,
                env=self.env,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
            with self.log.open("ab") as log:
                log.write(done.stderr)
            return done.returncode, done.stdout.decode()
        with self.log.open("ab") as log:
            process = self.forker.start(
                *arguments, cwd=self.work, env=self.env, stderr=log.fileno(), stdin=False
            )
        async with cleared_away(process):
            return await output_of(process, PATIENCE)

    @asynccontextmanager
    async def talk(
        self,
        capabilities: Json | None = None,
        *,
        handlers: Mapping[str, Handler] | None = None,
        trim_exception: bool = True,
    ) -> AsyncIterator[Talk]:
        """A server with one new session in `work`."""
        async with self.start(handlers=handlers, trim_exception=trim_exception) as agent:
            await greet(agent, capabilities)
            yield await Talk.new(agent, self.work)

    @asynccontextmanager
    async def resumed(self, talk: Talk, capabilities: Json | None = None) -> AsyncIterator[list[Json]]:
        """Another server that loads the session; gives the replay. `talk` goes on there."""
        async with self.start() as agent:
            await greet(agent, capabilities)
            yield await talk.load(agent)


def call(name: str, **arguments: object) -> Json:
    """A tool call in a scripted reply."""
    return {"name": name, "arguments": arguments}


def calls(*wanted: Json, **more: object) -> Json:
    """A scripted reply of calls alone."""
    return {"calls": list(wanted), **more}


def says(text: str | list[str], **more: object) -> Json:
    """A scripted reply of text."""
    return {"text": text, **more}
