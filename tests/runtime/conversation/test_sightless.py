"""A model that cannot see: pictures become lines, everything else goes through untouched."""

from dataclasses import replace

from runtime.conversation.retry import SightlessProvider, described, line_for
from runtime.values.model import ModelRequest, Segment
from runtime.values.rows import Attachment, Image, Row
from tests.support.fakes import script

DATA = Image("image/png", data="QUJD" * 3000)
LINK = Image("image/jpeg", uri="https://h/cat.jpg")


async def sent(provider: SightlessProvider, request: ModelRequest) -> None:
    async with provider.stream(request) as batches:
        async for _ in batches:
            pass


def test_a_line_says_what_is_missing_and_why():
    because = "left out, because the model in use cannot see images]"
    assert line_for(DATA) == f"[image/png, about 9 kB: {because}"
    assert line_for(LINK) == f"[image/jpeg (https://h/cat.jpg): {because}"
    assert line_for(Image("", uri="data:image/png;base64,QUJD")) == f"[image: {because}"


def test_the_text_stays_and_each_picture_gets_a_line():
    row = Row("user", "look", images=(DATA, LINK))
    assert described(row) == replace(row, content=f"look\n{line_for(DATA)}\n{line_for(LINK)}", images=())
    assert described(Row("user", "", images=(LINK,))).content == line_for(LINK)


def test_a_result_keeps_its_other_attachments():
    other = Attachment("file", "/a")
    row = described(Row("tool", "done", attachments=(Attachment("image", "/b.png"), other)))
    assert row.attachments == (other,)
    assert row.content.startswith("done\n[attached image: left out")


async def test_only_segments_with_pictures_are_made_anew_and_once():
    inner = script(echo="ok")
    provider = SightlessProvider(inner)
    plain, seen = Segment((Row("user", "a"),)), Segment((Row("user", "b", images=(DATA,)),))
    request = ModelRequest("m", (plain, seen))
    await sent(provider, request)
    await sent(provider, replace(request, segments=(plain, seen, Segment((Row("user", "c"),)))))
    first, second = inner.requests
    assert first.segments[0] is plain
    assert first.segments[1] is second.segments[1]
    assert "left out" in first.segments[1].rows[0].content
    assert seen.rows[0].images == (DATA,)
    assert provider.name == inner.name
