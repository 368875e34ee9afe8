"""Every event as ACP v2 tells it: valid by the draft, with no name that is not ours to give."""

from dataclasses import replace
from typing import Any, cast, get_args

import pytest

from acp_server.acp.client_options import WireOptions
from acp_server.acp.size_limits import TEXT_LIMIT
from acp_server.methods.v2.updates import TRIM_KIND, Standing, updates
from runtime.values.events import (
    AgentText,
    AgentThought,
    Event,
    FileDiff,
    ModeChanged,
    ToolCallChanged,
    ToolCallStarted,
    UserMessage,
)
from runtime.values.texts import CANCELLED_RESULT, INTERRUPTED_RESULT, NOT_RUN_RESULT
from tests.acp_server.acp.test_outbound import EVENTS, TRIM
from tests.support.acp_schema import NonConformant, check_params, check_type

OPTIONS = [
    WireOptions(form, visible, notices=True, compaction=True)
    for form in ("update", "extension", None)
    for visible in (True, False)
]
HI = {"type": "text", "text": "hi"}


def bodies(
    event: Event, standing: Standing | None = None, options: WireOptions = OPTIONS[1]
) -> list[dict[str, object]]:
    found = []
    for method, params in updates("S", event, options, standing or Standing()):
        check_params(method, params, edition="schema-v2")
        found.append(params["update"] if method == "session/update" else params)
    return found  # type: ignore[return-value]


def kinds(event: Event, standing: Standing | None = None, options: WireOptions = OPTIONS[1]) -> list[object]:
    return [body.get("sessionUpdate", "extension") for body in bodies(event, standing, options)]


def test_all_events_are_tried():
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("replaying", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("event", EVENTS)
def test_it_is_valid_and_holds_no_null(event: Event, options: WireOptions, replaying: bool):
    for body in bodies(event, Standing(replaying=replaying), options):
        assert [key for key, value in body.items() if value is None] == []


def test_only_modes_are_not_told():
    assert [event for event in EVENTS if not updates("S", event, OPTIONS[0], Standing())] == [
        ModeChanged("plan")
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (OPTIONS[0], [TRIM_KIND, "usage_update", "compaction_update", "agent_thought_chunk"]),
        (OPTIONS[1], [TRIM_KIND, "usage_update", "compaction_update"]),
        (OPTIONS[3], ["extension", "usage_update", "compaction_update"]),
        (OPTIONS[5], ["usage_update", "compaction_update"]),
    ],
)
def test_a_trim_is_one_unit(options: WireOptions, told: list[str]):
    assert kinds(TRIM, options=options) == told


def test_a_message_is_made_by_its_first_piece_and_joined_by_the_others():
    standing = Standing()
    block = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    events = [UserMessage("m1", HI), UserMessage("m1", block), UserMessage("m2", HI)]
    assert [kinds(event, standing) for event in events] == [
        ["user_message"],
        ["user_message_chunk"],
        ["user_message"],
    ]


@pytest.mark.parametrize(("event", "kind"), [(AgentText, "agent_message"), (AgentThought, "agent_thought")])
def test_what_streams_in_comes_in_chunks_and_is_shown_again_in_one_piece(event: type[AgentText], kind: str):
    standing = Standing()
    assert kinds(event("m", "a"), standing) == [f"{kind}_chunk"]
    with standing.replay():
        assert kinds(event("m", "a"), standing) == [kind]
        long = kinds(event("n", "x" * (2 * TEXT_LIMIT + 1)), standing)
        assert long == [kind, f"{kind}_chunk", f"{kind}_chunk"]
    with standing.replay():
        assert kinds(event("n", "a"), standing) == [kind]
    assert kinds(event("m", "b"), standing) == [f"{kind}_chunk"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (CANCELLED_RESULT, "cancelled"),
        (NOT_RUN_RESULT, "cancelled"),
        (INTERRUPTED_RESULT, "failed"),
        ("", "failed"),
    ],
)
def test_a_call_that_was_stopped_is_told_apart_from_one_that_failed(text: str, status: str):
    changed = ToolCallChanged("c", "failed", text)
    started = ToolCallStarted("c", "x", "X", "edit", {}, status="failed", content=text)
    for event in (changed, started):
        (body,) = bodies(event)
        assert (body["sessionUpdate"], body["status"]) == ("tool_call_update", status)
    (done,) = bodies(replace(changed, status="completed"))
    assert done["status"] == "completed"


def test_a_change_of_a_file_has_its_path_and_a_patch():
    (body,) = bodies(ToolCallChanged("c", "completed", "Edited.", (FileDiff("/a", "x\n", "y\n"),)))
    diff, text = cast("list[Any]", body["content"])
    assert diff["changes"][0]["path"] == "/a"
    assert diff["patch"]["text"].endswith("-x\n+y\n")
    assert text["content"]["text"] == "Edited."


def test_the_check_itself_refuses_names_that_are_reserved():
    for update in ({"sessionUpdate": "history_trimmed"}, {"sessionUpdate": "state_update", "state": "busy"}):
        with pytest.raises(NonConformant):
            check_type("SessionUpdate", update, "schema-v2")
    check_type("SessionUpdate", {"sessionUpdate": "_ours"}, "schema-v2")
    with pytest.raises(NonConformant):
        check_type("ToolKind", "look", "schema-v2")
