"""Guidance files, prompt files and what a prompt holds, as the model is sent them by the real process."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_server.workspace.guidance_files import NAMES
from runtime.setup.guidance import HEAD
from tests.process.homes import Home
from tests.process.models import answers, rows_of, system_of
from tests.support.fakes_llm import fake_server
from tests.support.wire_order import Json
from tests.support.wire_talk import Talk, text_block

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()


def link(path: Path, fragment: str = "") -> Json:
    return {"type": "resource_link", "uri": f"file://{path}{fragment}", "name": path.name}


async def test_guidance_reaches_the_model_as_what_it_is_and_costs_the_cache_only_when_it_changes(
    home: Home,
) -> None:
    (home.work / "AGENTS.md").write_text("Use tabs.\n")
    (home.work / "CLAUDE.md").write_text("Not read, the other one is there.\n")
    (home.root / "config" / "AGENTS.md").write_text("Be kind.\n")
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            first = await talk.turn("one")
            await talk.turn("two")
            (home.work / "AGENTS.md").write_text("Use spaces.\n")
            third = await talk.turn("three")
            help_text = (await talk.turn("/help")).text
    said = [system_of(server, number) for number in range(3)]
    assert HEAD in said[0]
    assert said[0].index("Be kind.") < said[0].index(
        "AGENTS.md (comes with the project):\n```\nUse tabs.\n```"
    )
    assert "Not read" not in said[0]
    assert said[1] == said[0]
    assert said[2] == said[0].replace("tabs", "spaces")
    assert (first.asides, third.asides.strip()) == ("", "Guidance files\nRead anew: AGENTS.md.")
    assert "AGENTS.md" in help_text


@pytest.mark.parametrize("name", NAMES)
async def test_each_common_name_is_read(home: Home, name: str) -> None:
    (home.work / name).parent.mkdir(exist_ok=True)
    (home.work / name).write_text("Obey the linter.\n")
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            await talk.turn("one")
    assert f"{name} (comes with the project)" in system_of(server)
    assert "Obey the linter." in system_of(server)


async def test_guidance_is_cut_visibly_at_a_tenth_of_the_window(home: Home) -> None:
    (home.work / "AGENTS.md").write_text("A rule of this project.\n" * 1000)
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url, context_window=8000)
        async with home.talk() as talk:
            turn = await talk.turn("one")
            again = await talk.turn("two")
    guidance = system_of(server)[system_of(server).index(HEAD) :]
    assert 2000 < len(guidance) <= 8000 // 10 * 4
    assert "of 24,000 characters]" in guidance
    assert "AGENTS.md is cut: guidance may take 800 tokens with this model." in turn.asides
    assert again.asides == ""


async def test_folders_above_count_up_to_the_repository_and_no_further(home: Home) -> None:
    inner = home.work / "repo" / "pkg"
    (home.work / "repo" / ".git").mkdir(parents=True)
    inner.mkdir()
    for folder, text in ((home.work, "outside"), (home.work / "repo", "of the root"), (inner, "of the pkg")):
        (folder / "AGENTS.md").write_text(f"{text}\n")
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        async with home.start() as agent:
            await agent.call("initialize", {"protocolVersion": 1})
            await (await Talk.new(agent, inner)).turn("one")
    said = system_of(server)
    assert "outside" not in said
    assert said.index("../AGENTS.md (comes with the project):\n```\nof the root") < said.index("of the pkg")


async def test_a_prompt_file_is_a_command_with_arguments(home: Home) -> None:
    prompts = home.root / "config" / "prompts"
    prompts.mkdir()
    (prompts / "review.md").write_text(
        "---\ndescription: Look a file over\nargument-hint: file\n---\nReview $1 for $ARGUMENTS.\n"
    )
    (prompts / "help.md").write_text("Never: there is one.\n")
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            told = await talk.see("available_commands_update")
            turn = await talk.turn("/review a.py $1 speed")
    mine = {"name": "review", "description": "Look a file over", "input": {"hint": "file"}}
    assert told["availableCommands"][-1] == mine
    assert rows_of(server)[-1]["content"] == "Review a.py for a.py $1 speed."
    assert "help.md is left out: there is a /help already" in turn.asides


async def test_a_project_s_prompt_files_count_once_it_is_trusted_and_until_they_change(home: Home) -> None:
    prompts = home.work / ".wholeturn" / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "ship.md").write_text("Ship it\n")

    async def commands_and_words() -> tuple[list[str], str, str]:
        async with fake_server(answers("yes")) as server:
            home.model_at(server.base_url)
            async with home.talk() as talk:
                told = await talk.see("available_commands_update")
                turn = await talk.turn("/ship")
        return (
            [command["name"] for command in told["availableCommands"]],
            rows_of(server)[-1]["content"],
            turn.asides,
        )

    def trust() -> str:
        done = subprocess.run(
            [sys.executable, "-m", "acp_server", "trust", str(home.work)],
            env=home.env,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    names, sent, asides = await commands_and_words()
    assert "ship" not in names
    assert sent == "/ship"
    assert "left out: 1 prompt file of this project, since it is not trusted; to permit: " in asides
    assert "/ship" in trust()
    names, sent, asides = await commands_and_words()
    assert (names[-1], sent, asides) == ("ship", "Ship it", "")
    (prompts / "ship.md").write_text("Ship it now\n")
    assert (await commands_and_words())[1] == "/ship"


async def test_linked_files_are_read_as_far_as_the_tool_may(home: Home) -> None:
    (home.work / "a.py").write_text("one\ntwo\nthree\n")
    (home.work / ".env").write_text("KEY=hunter2\n")
    (home.root / "outside.txt").write_text("hunter2\n")
    (home.work / "leads.txt").symlink_to(home.root / "outside.txt")
    os.mkfifo(home.work / "pipe")
    names = ("a.py", ".env", "leads.txt", "pipe", "missing.txt")
    blocks = [
        text_block("look"),
        *(link(home.work / name) for name in names),
        link(home.work / "a.py", "#L2-2"),
    ]
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            await talk.turn(blocks)
    sent = rows_of(server)[-1]["content"]
    assert "Contents of a.py:\n```\n1|one\n2|two\n3|three\n```\n" in sent
    assert "2|two\n[lines 2-2 of 3; read on with line=3]\n```" in sent
    assert "hunter2" not in sent
    for name in (".env", "leads.txt", "pipe", "missing.txt"):
        assert f"{home.work / name} was not read: " in sent


async def test_guidance_and_linked_files_are_redacted_like_all_else(home: Home) -> None:
    (home.work / "AGENTS.md").write_text("The key is sk-12345.\n")
    (home.work / "a.py").write_text("key = 'sk-12345'\n")
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        path = home.root / "config" / "config.toml"
        path.write_text(f"redact = ['sk-[0-9]+']\n{path.read_text()}")
        async with home.talk() as talk:
            await talk.turn([text_block("look"), link(home.work / "a.py")])
    assert "The key is [redacted]." in system_of(server)
    assert "key = '[redacted]'" in rows_of(server)[-1]["content"]


async def test_a_picture_reaches_the_model_and_survives_a_reload(home: Home) -> None:
    picture: Json = {"type": "image", "data": PNG, "mimeType": "image/png"}
    wanted = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ]
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        async with home.talk() as talk:
            assert (await talk.turn([text_block("look"), picture])).text == "yes"
        async with home.resumed(talk) as replay:
            shown = [
                update["content"] for update in replay if update["sessionUpdate"] == "user_message_chunk"
            ]
            assert shown == [text_block("look"), picture]
            await talk.turn("and now?")
    assert rows_of(server, 0)[-1]["content"] == wanted
    assert rows_of(server, 1)[0]["content"] == wanted


async def test_a_model_that_cannot_see_is_told_in_a_line(home: Home) -> None:
    picture: Json = {"type": "image", "data": PNG, "mimeType": "image/png"}
    async with fake_server(answers("yes")) as server:
        home.model_at(server.base_url)
        path = home.root / "config" / "config.toml"
        path.write_text(path.read_text() + "\n[providers.model.models.m]\nimages = false\n")
        async with home.talk() as talk:
            turn = await talk.turn([text_block("look"), picture])
    assert "left out, because the model in use cannot see images" in rows_of(server)[-1]["content"]
    assert "This model cannot see pictures" in turn.asides
