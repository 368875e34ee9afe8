"""Generators of histories: whole and broken turns, as recorded rows and as live histories."""

from hypothesis import settings
from hypothesis import strategies as st

from runtime.history.turns import History, restore_history
from runtime.profiles import Profile, Route
from runtime.rows import Attachment, Image, Row, ToolCall, ToolSpec

EXAMPLES = settings()
"""As many as the loaded profile says: `HYPOTHESIS_PROFILE` is default, ci or thorough."""

TOOLS = (
    ToolSpec("shell", "run a command", '{"type":"object"}'),
    ToolSpec("read_file", "read a file", '{"type":"object","properties":{"path":{"type":"string"}}}'),
)
NAMES = ("shell", "read_file", "retired_tool")

texts = st.one_of(
    st.sampled_from(["", "ok", "run it", "历史管理" * 20, "🔥🎉", "x" * 900, "[IMAGE:/a.png] look"]),
    st.sampled_from(["[earlier turns omitted to fit the context window]", '{"attachments":[]}']),
    st.text(max_size=40),
)
spoken = texts.filter(str.strip)
call_names = st.sampled_from(["c1", "c2", "c3", "c1_2", "x"])


@st.composite
def rounds(draw: st.DrawFn, *, broken: bool) -> list[Row]:
    """One tool round: a call row and its results, whole unless `broken`."""
    count = draw(st.integers(1, 3))
    ids = draw(st.lists(call_names, min_size=count, max_size=count, unique=not broken))
    calls = tuple(
        ToolCall(one, draw(st.sampled_from(NAMES)), draw(st.sampled_from(["{}", '{"a":1}']))) for one in ids
    )
    rows = [Row("assistant", draw(st.sampled_from(["", "let me look"])), calls)]
    results = [Row("tool", draw(texts), tool_call_id=one, attachments=draw(attachments)) for one in ids]
    if broken:
        results = draw(st.permutations(results))[: draw(st.integers(0, count))]
        results += draw(
            st.lists(
                st.builds(Row, st.just("tool"), texts, tool_call_id=st.sampled_from([None, "zz", "c1"])),
                max_size=1,
            )
        )
    return rows + results


attachments = st.sampled_from([(), (), (), (Attachment("image", "/shot.png"),), (Attachment("image", "?"),)])
prompt_mode_round = st.just(
    [
        Row("assistant", '<tool_call>{"name":"shell","arguments":{"n":1}}</tool_call>'),
        Row("user", '[Tool results]\n<tool_result name="shell">out</tool_result>', origin="runtime"),
    ]
)
feedback = st.just(
    [Row("assistant", "garbled"), Row("user", "[Tool call parse error]\nagain", origin="runtime")]
)
prompts = st.builds(
    Row,
    st.just("user"),
    spoken.filter(lambda text: not text.startswith("[Tool results]")),
    images=st.sampled_from([(), (), (Image("image/png", "QUJD" * 50),)]),
    origin=st.just("user"),
)


@st.composite
def turn_rows(draw: st.DrawFn, *, broken: bool) -> list[Row]:
    """A turn: its prompt, some rounds, mostly a closing reply."""
    parts = st.one_of(rounds(broken=broken), prompt_mode_round, feedback)
    rows = [draw(prompts), *(row for part in draw(st.lists(parts, max_size=3)) for row in part)]
    if draw(st.integers(0, 4)):
        rows.append(Row("assistant", draw(spoken)))
    return rows


def turn_lists(*, broken: bool, min_size: int = 1) -> st.SearchStrategy[list[list[Row]]]:
    """Some turns, oldest first."""
    return st.lists(turn_rows(broken=broken), min_size=min_size, max_size=8)


systems = st.lists(st.sampled_from(["be brief", "", "s" * 60]), max_size=2)


@st.composite
def histories(draw: st.DrawFn, *, broken: bool = False) -> History:
    """A live history of such turns, the newest one perhaps still running."""
    turns = draw(turn_lists(broken=broken))
    history = restore_history(
        ((f"t{index}", rows) for index, rows in enumerate(turns)),
        system=draw(systems),
        late_system=draw(systems),
        crumb_present=draw(st.booleans()),
    )
    history.running = draw(st.booleans())
    return history


@st.composite
def flat_rows(draw: st.DrawFn) -> list[Row]:
    """Plain rows of an embedder: a preamble, late system rows, broken pairs, all in one list."""
    rows = [Row("system", text) for text in draw(systems)]
    rows += [Row("assistant", "hello") for _ in range(draw(st.integers(0, 1)))]
    for turn in draw(turn_lists(broken=True, min_size=0)):
        at = draw(st.integers(0, len(turn)))
        late = [Row("system", "late")] if draw(st.integers(0, 3)) == 0 else []
        rows += [*turn[:at], *late, *turn[at:]]
    return rows


profiles = st.builds(
    Profile,
    max_history_messages=st.sampled_from([None, 0, 1, 2, 5]),
    history_unit=st.sampled_from(["turns", "messages"]),
    max_context_tokens=st.sampled_from([None, 0, 1, 40, 300, 2000]),
    keep_tool_context_turns=st.integers(0, 3),
    running_turn_overflow=st.sampled_from(["fail", "shorten"]),
    trim_slack_ratio=st.sampled_from([0.0, 0.2, 0.9]),
)
routes = st.builds(
    Route,
    st.just("p"),
    st.just("m"),
    st.sampled_from([None, 600, 3000, 100_000]),
    st.sampled_from([None, 100]),
)
