"""A simulated session as one HTML page: a bar a request, stacked by what fills it, trims marked. Pure.

The page is whole by itself: no script, font or picture from elsewhere. Without scripts the bars and their
tooltips are there all the same; with them, `#N` in the address opens request N.
"""

from collections.abc import Iterator, Sequence
from html import escape

from runtime.replay.simulate import Gone, Request
from runtime.values.profiles import Profile

PARTS = (
    ("fixed", "system prompt and tools"),
    ("beside", "breadcrumb and notes"),
    ("older", "older turns, collapsed"),
    ("whole", "turns sent whole"),
    ("running", "the running turn"),
)
"""Bottom to top."""
HEIGHT = 300
"""Of the tallest bar, pixels."""
TOP = 26
WIDEST, NARROWEST = 24, 3

STYLE = """\
:root { color-scheme: light dark; --bg: #fff; --ink: #1c1c1c; --dim: #6b6b6b; --line: #d9d9d9; --mark:
#c62828; --fixed: #8e8e99; --beside: #b98a2f; --older: #9fc3dd; --whole: #3f7fb5; --running: #2e8b57; }
@media (prefers-color-scheme: dark) { :root { --bg: #16181b; --ink: #e8e8e8; --dim: #9a9a9a; --line: #3a3d42;
  --mark: #ff6b5e; --fixed: #6d6d78; --beside: #c89b45; --older: #4d7186; --whole: #5b9bd0; --running:
  #4fb07c; } } body { background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin:
  2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; } p { margin: .3rem 0; } .dim { color: var(--dim); }
.chart { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; margin: 1rem 0; }
.key span { display: inline-block; margin-right: 1.2rem; white-space: nowrap; }
.key i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em; }
.fixed { fill: var(--fixed); background: var(--fixed); } .beside { fill: var(--beside); background:
var(--beside); } .older { fill: var(--older); background: var(--older); } .whole { fill: var(--whole);
background: var(--whole); } .running { fill: var(--running); background: var(--running); } .mark { fill:
var(--mark); } .fold { fill: var(--dim); } .hit { fill: transparent; } .bar { cursor: pointer; }
.bar:hover .hit, .bar.open .hit { fill: var(--ink); fill-opacity: .1; }
.limit { stroke: var(--mark); stroke-width: 1; stroke-dasharray: 4 3; fill: none; }
.axis { font-size: 11px; fill: var(--dim); }
#told { border: 1px solid var(--line); border-radius: 6px; min-height: 8.5rem; padding: .7rem 1rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
"""

SCRIPT = """\
const told = document.getElementById("told");
const bars = [...document.querySelectorAll(".bar")];
let kept = null;
function show(bar) { told.textContent = bar.querySelector("title").textContent; }
function keep(bar) {
  if (kept) kept.classList.remove("open");
  kept = bar; bar.classList.add("open"); show(bar);
}
for (const bar of bars) {
  bar.addEventListener("mouseenter", () => show(bar));
  bar.addEventListener("mouseleave", () => { if (kept) show(kept); });
  bar.addEventListener("click", () => { history.replaceState(null, "", "#" + bar.dataset.n); keep(bar); });
}
function follow() {
  const bar = bars[Number(location.hash.slice(1)) - 1];
  if (bar) { keep(bar); bar.scrollIntoView({ block: "nearest", inline: "center" }); }
}
window.addEventListener("hashchange", follow);
follow();
"""


def facts(one: Request) -> dict[str, object]:
    """A request for programs. Tokens; call: of its turn, from 0."""
    return {
        "turn": one.turn,
        "call": one.call,
        "tokens": one.total,
        "parts": {name: getattr(one, name) for name, _ in PARTS},
        "limit": one.target,
        "window": one.window,
        "collapsedTurns": one.collapsed,
        "fits": not one.over,
        "gone": [
            {
                "reason": gone.reason,
                "strategy": gone.strategy,
                "messages": gone.messages,
                "turns": [{"turn": number, "prompt": prompt} for number, prompt in gone.turns],
                "tokensBefore": gone.before,
                "tokensAfter": gone.after,
            }
            for gone in one.gone
        ],
    }


def page(requests: Sequence[Request], profile: Profile) -> str:
    """The page."""
    trims = sum(len(one.gone) for one in requests)
    turns = sum(len(gone.turns) for one in requests for gone in one.gone)
    title = f"{len(requests)} requests, {trims} trims"
    limits = (
        f"profile {profile.name}: {profile.retention} retention, trims above {requests[-1].target} tokens; "
        f"window {requests[-1].window}"
    )
    key = "".join(f'<span><i class="{name}"></i>{what}</span>' for name, what in reversed(PARTS))
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            "<h1>What the model would have been sent</h1>",
            f'<p id="sum">{escape(title)}, {turns} turns dropped</p>',
            f'<p class="dim">{escape(limits)}</p>',
            f'<p class="key">{key}<span>▼ a trim</span><span>● more turns collapsed</span></p>',
            f'<div class="chart">{picture(requests)}</div>',
            '<div id="told" class="dim">Point at a bar to see what fills it and what left before it.</div>',
            f"<script>{SCRIPT}</script>",
            "</body></html>",
        ]
    )


def picture(requests: Sequence[Request]) -> str:
    """The bars."""
    width = max(min(WIDEST, 1100 // len(requests)), NARROWEST)
    tallest = max(max(one.total, one.target) for one in requests)
    scale = HEIGHT / tallest
    across, down = width * len(requests) + 60, HEIGHT + TOP + 24
    limit = " ".join(
        f"{at * width},{y_of(one.target, scale)} {(at + 1) * width},{y_of(one.target, scale)}"
        for at, one in enumerate(requests)
    )
    bars = "".join(bar(at, one, before, width, scale) for at, one, before in with_before(requests))
    numbers = labels(requests, width)
    ticks = "".join(axis_text(at * width, down - 6, one.turn) for at, one in numbers)
    size = axis_text(width * len(requests) + 4, y_of(tallest, scale) + 4, tallest)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" role="img" '
        f'aria-label="tokens of each request">{bars}'
        f'<polyline class="limit" points="{limit}"/>{ticks}{size}</svg>'
    )


def axis_text(x: float, y: float, number: int) -> str:
    """A number beside the bars."""
    return f'<text class="axis" x="{x}" y="{y}">{number}</text>'


def with_before(requests: Sequence[Request]) -> Iterator[tuple[int, Request, Request | None]]:
    """Each request with its place and the one before it."""
    before: Request | None = None
    for at, one in enumerate(requests):
        yield at, one, before
        before = one


def labels(requests: Sequence[Request], width: int) -> Iterator[tuple[int, Request]]:
    """The requests whose turn is written below: the first of a turn, not too close to each other."""
    last = -1000
    for at, one in enumerate(requests):
        if not one.call and (at - last) * width >= 40:
            last = at
            yield at, one


def y_of(tokens: float, scale: float) -> float:
    """Where so many tokens reach, from above."""
    return round(TOP + HEIGHT - tokens * scale, 1)


def bar(at: int, one: Request, before: Request | None, width: int, scale: float) -> str:
    """One bar with its tooltip and its marks."""
    x, base = at * width, 0
    gap = 1 if width > NARROWEST else 0
    out = [f'<g class="bar" data-n="{at + 1}"><title>{escape(told(at, one))}</title>']
    for name, _ in PARTS:
        size = getattr(one, name)
        if size > 0:
            top = y_of(base + size, scale)
            tall = round(size * scale, 1)
            out.append(f'<rect class="{name}" x="{x}" y="{top}" width="{width - gap}" height="{tall}"/>')
            base += size
    middle, above = x + width / 2, y_of(base, scale) - 4
    if one.gone:
        out.append(f'<path class="mark" d="M{middle - 5} {above - 8}h10l-5 8z"/>')
    if before is not None and one.collapsed > before.collapsed:
        out.append(f'<circle class="fold" cx="{middle}" cy="{TOP + HEIGHT + 5}" r="2"/>')
    out.append(f'<rect class="hit" x="{x}" y="0" width="{width}" height="{HEIGHT + TOP}"/></g>')
    return "".join(out)


def told(at: int, one: Request) -> str:
    """All that is to be said of a request."""
    lines = [f"Request {at + 1}: turn {one.turn}, call {one.call + 1} ({one.prompt or 'no text'})"]
    parts = ", ".join(f"{what} {getattr(one, name)}" for name, what in PARTS if getattr(one, name))
    lines.append(f"{one.total} tokens, trimmed above {one.target}: {parts}")
    if one.collapsed:
        lines.append(f"{one.collapsed} turns are collapsed")
    lines += [line for gone in one.gone for line in gone_lines(gone)]
    return "\n".join([*lines, *(["It would not have fitted the window"] if one.over else [])])


def gone_lines(gone: Gone) -> Iterator[str]:
    """What went in one trim."""
    sizes = f", {gone.before} tokens before, {gone.after} after" if gone.before is not None else ""
    yield f"Before it left: {gone.messages} messages ({gone.reason}; {gone.strategy}{sizes})"
    for number, prompt in gone.turns[:20]:
        yield f"  turn {number}: {prompt}"
    if len(gone.turns) > 20:
        yield f"  and {len(gone.turns) - 20} more turns"
