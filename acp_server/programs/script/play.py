"""Plays a script step by step, to its end or the first difference, and tells the outcome as text.

Knows the stage and the steps, nothing of what the agent is.
"""

import json
import math
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import trio

from acp_server.programs.script import steps
from acp_server.programs.script.agent import Stray
from acp_server.programs.script.match import ABSENT, Difference, compare
from acp_server.programs.script.stage import Failed, Options, Stage, encode, value_of
from acp_server.programs.script.steps import Literal, Script, Step
from acp_server.programs.script.waiting import any_order, expect, nothing, until
from runtime.values.file_access import writing


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a play ended. seconds: how long it took. failure: None when all was as scripted."""

    script: Script
    seconds: float
    failure: Failed | None = None
    step: Step | None = None
    note: str = ""
    last: tuple[str, ...] = ()
    """The last lines in both directions."""
    stderr: str = ""


async def play(script: Script, options: Options) -> Outcome:
    """Play it. Never raises for what the agent does; the agent is gone when this returns."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="script-", ignore_cleanup_errors=True) as made:
        cwd = Path(await trio.Path(options.cwd or made).resolve())
        async with _stage(script, options, cwd) as stage:
            outcome = await _play(script, stage)
        if outcome.failure is None and stage.agent is not None:
            outcome = _check_rest(outcome, stage)
    return Outcome(
        script,
        time.monotonic() - started,
        outcome.failure,
        outcome.step,
        outcome.note,
        tuple(stage.agent.last) if stage.agent else (),
        stage.agent.stderr if stage.agent else "",
    )


@asynccontextmanager
async def _stage(script: Script, options: Options, cwd: Path) -> AsyncIterator[Stage]:
    variables: dict[str, object] = {"CWD": str(cwd), "FIXTURE_DIR": script.folder}
    async with trio.open_nursery() as nursery:
        stage = Stage(options, cwd, nursery, variables, dict(options.env))
        try:
            yield stage
        finally:
            if stage.agent is not None:
                await stage.agent.finish(options.grace)


async def _play(script: Script, stage: Stage) -> Outcome:
    note = ""
    for step in script.steps:
        if isinstance(step.action, steps.Note):
            note = step.action.text
        stage.options.trace(f"-- {script.name}:{step.line}")
        try:
            await _HANDLERS[type(step.action)](stage, step.action)
        except Failed as failure:
            return Outcome(script, 0.0, failure, step, note)
    return Outcome(script, 0.0, note=note)


def _check_rest(outcome: Outcome, stage: Stage) -> Outcome:
    """Frames may be left over at the end, a stray line may not."""
    assert stage.agent is not None
    for item in stage.agent.inbox.waiting():
        if isinstance(item, Stray):
            try:
                value_of(item)
            except Failed as failure:
                return Outcome(outcome.script, 0.0, failure, outcome.script.steps[-1], outcome.note)
    return outcome


async def _send(stage: Stage, action: steps.Send) -> None:
    message = stage.fill(action.message)
    if isinstance(message, dict):
        message = {"jsonrpc": "2.0"} | message
        if message.get("method") == "session/prompt":
            stage.said.clear()
    await stage.send(encode(message))


async def _send_text(stage: Stage, action: steps.SendText) -> None:
    await stage.send(str(stage.fill(action.text)).encode("utf-8", "surrogatepass"))


async def _send_bytes(stage: Stage, action: steps.SendBytes) -> None:
    await stage.send(action.data)


async def _optional(stage: Stage, action: steps.Optional) -> None:
    stage.optional.append(action.awaited)


async def _ignore(stage: Stage, action: steps.Ignore) -> None:
    if action.awaited is None:
        stage.ignored.clear()
    else:
        stage.ignored.append(action.awaited)


async def _text(stage: Stage, action: steps.Text) -> None:
    session = stage.fill(action.session)
    text = "".join(piece for where, piece in stage.said if session in (None, where))
    stage.said.clear()
    result = compare(stage.fill_pattern(action.pattern), text)
    if isinstance(result, Difference):
        raise Failed("the agent's text is not as expected", difference=result, frame=text)
    stage.variables.update(result)


async def _close(stage: Stage, _: steps.Close) -> None:
    await (await stage.running()).close()


async def _kill(stage: Stage, action: steps.Kill) -> None:
    (await stage.running()).kill(action.signal)


async def _restart(stage: Stage, _: steps.Restart) -> None:
    if stage.agent is not None:
        await stage.agent.finish(stage.options.grace)
        for item in stage.agent.inbox.waiting():
            value_of(item)
    stage.said.clear()
    await stage.start()


async def _exit(stage: Stage, action: steps.Exit) -> None:
    agent = await stage.running()
    seconds = action.timeout or stage.options.timeout
    status = math.nan
    with trio.move_on_after(seconds):
        status = await agent.wait()
    if math.isnan(status):
        raise Failed(f"the agent still runs after {seconds:g} s")
    result = compare(stage.fill_pattern(action.pattern), status)
    if isinstance(result, Difference):
        raise Failed("the agent ended with another status", difference=result, frame=status)


async def _set(stage: Stage, action: steps.Set) -> None:
    for name, value in action.values.items():
        stage.variables[name] = stage.fill(value)


async def _env(stage: Stage, action: steps.Env) -> None:
    stage.environment |= {name: str(stage.fill(value)) for name, value in action.values.items()}


def _put(path: Path, text: str) -> None:
    with writing(path) as file:
        file.write(text.encode())


async def _write(stage: Stage, action: steps.Write) -> None:
    path = stage.cwd / action.path
    try:
        await trio.Path(path.parent).mkdir(parents=True, exist_ok=True)
        await trio.to_thread.run_sync(_put, path, str(stage.fill(action.content)))
    except OSError as error:
        raise Failed(f"{action.path} cannot be written: {error.strerror}") from error


async def _note(stage: Stage, action: steps.Note) -> None:
    stage.options.trace(f"-- {action.text}")


_Handler = Callable[[Stage, object], Awaitable[None]]
_HANDLERS: dict[type, _Handler] = {
    kind: cast(_Handler, handler)
    for kind, handler in {
        steps.Send: _send,
        steps.SendText: _send_text,
        steps.SendBytes: _send_bytes,
        steps.Expect: expect,
        steps.Until: until,
        steps.AnyOrder: any_order,
        steps.Optional: _optional,
        steps.Ignore: _ignore,
        steps.Nothing: nothing,
        steps.Text: _text,
        steps.Close: _close,
        steps.Kill: _kill,
        steps.Restart: _restart,
        steps.Exit: _exit,
        steps.Set: _set,
        steps.Env: _env,
        steps.Write: _write,
        steps.Note: _note,
    }.items()
}

_VALUE = 300
_FRAME = 1000
_STDERR_LINES = 12


def outcome_text(outcome: Outcome) -> str:
    """`ok NAME (N steps, 0.12 s)`, or the first difference and what led to it."""
    if outcome.failure is None:
        return f"ok {outcome.script.name} ({_count(outcome)}, {outcome.seconds:.2f} s)"
    lines = [f"FAIL {_where(outcome)}: {outcome.failure.problem}"]
    if outcome.note:
        lines.append(f"  after the note: {outcome.note}")
    if outcome.step is not None:
        lines.append(f"  step      {shorten(outcome.step.source, _FRAME)}")
    lines += _difference(outcome)
    lines += _block("last lines (-> sent, <- received):", outcome.last)
    stderr = outcome.stderr.rstrip("\n").split("\n") if outcome.stderr.strip() else []
    lines += _block("the agent's stderr, its end:", stderr[-_STDERR_LINES:])
    return "\n".join(lines)


def closing(passed: int, failed: int) -> str:
    """The last line of a run."""
    return f"{passed} passed, {failed} failed"


def shorten(text: str, limit: int) -> str:
    """At most about `limit` characters, the middle left out."""
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]} … {text[-(limit // 2) :]}"


def compact(value: object, limit: int) -> str:
    """A value as one line of JSON, shortened; `nothing` for a key that is not there."""
    if value is ABSENT:
        return "nothing"
    return shorten(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain), limit)


def _plain(value: object) -> object:
    return value.value if isinstance(value, Literal) else str(value)


def _difference(outcome: Outcome) -> list[str]:
    assert outcome.failure is not None
    difference, lines = outcome.failure.difference, []
    if difference is not None:
        expected = "nothing more" if difference.expected is ABSENT else compact(difference.expected, _VALUE)
        lines.append(f"  differs at {difference.path or 'the top'}")
        lines.append(f"  expected  {expected}")
        lines.append(f"  came      {compact(difference.came, _VALUE)}")
    if outcome.failure.frame is not None:
        lines.append(f"  in        {compact(outcome.failure.frame, _FRAME)}")
    return lines


def _block(title: str, lines: object) -> list[str]:
    kept = [f"    {line}" for line in lines] if isinstance(lines, list | tuple) else []
    return [f"  {title}", *kept] if kept else []


def _where(outcome: Outcome) -> str:
    return f"{outcome.script.name}:{outcome.step.line}" if outcome.step else outcome.script.name


def _count(outcome: Outcome) -> str:
    number = len(outcome.script.steps)
    return f"{number} step" if number == 1 else f"{number} steps"
