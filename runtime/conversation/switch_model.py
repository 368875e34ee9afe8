"""A session that is set to another model, level of thought or profile while it is open.

What is chosen holds from the next turn on: a turn ends with what it began with. Nothing is trimmed by it; the
next provider call does that, and says so. Knows no settings: what can be chosen is asked of `Catalog`.
"""

from collections.abc import Mapping
from typing import Protocol

from runtime.history.request.budget import MeterSize, effective_context_budget, meter_size
from runtime.history.request.trims import moved
from runtime.setup.session_setup import Setup
from runtime.transcript.session_state import with_learned
from runtime.trimming.learned_limits import Counts
from runtime.trimming.model_context import HistoryKeeper
from runtime.values.events import Noticed
from runtime.values.profiles import AS_CONFIGURED, Choice, Offer, Route
from runtime.values.prompt import Prompt
from schemas.transcript import SessionState


class Catalog(Protocol):
    """What a session may be set to."""

    def offers(self, choice: Choice) -> tuple[Offer, ...]:
        """All that can be set, when this is chosen."""
        ...

    def chosen(self, choice: Choice, offer_id: str, value: str) -> Choice:
        """The choice with one thing set. Raises InvalidParams, naming what is possible."""
        ...

    def setup(self, choice: Choice) -> Setup:
        """What a session runs with when this is chosen. Raises ConfigError."""
        ...


class Switching:
    """The choice of one session, in force or waiting for the next turn."""

    def __init__(self, catalog: Catalog, choice: Choice = AS_CONFIGURED) -> None:
        self.choice = choice
        self._catalog = catalog
        self._next: Setup | None = None
        self._known: dict[Route, tuple[Route, Counts]] = {}
        self._blind_to: set[str] = set()

    def offers(self) -> tuple[Offer, ...]:
        """All that can be set, with what is set now or will be with the next turn."""
        return self._catalog.offers(self.choice)

    def choose(self, offer_id: str, value: str) -> None:
        """Set one thing, from the next turn on. Raises InvalidParams and ConfigError; nothing is set then."""
        choice = self._catalog.chosen(self.choice, offer_id, value)
        self._next, self.choice = self._catalog.setup(choice), choice

    def state(self, state: SessionState) -> SessionState:
        """The session's state with the choice in it."""
        return state.model_copy(update=self.choice._asdict())

    def take_up(self, keeper: HistoryKeeper, prompt: Prompt) -> list[Noticed]:
        """Go on with what was chosen, before a turn. Returns what the person is to be told."""
        setup, self._next = self._next, None
        pictures = any(map(is_picture, prompt.blocks))
        if setup is None:
            return self._unseen(keeper.setup, pictures)
        told = changes(keeper.setup, setup)
        self._use(keeper, setup)
        return [*told, *self._unseen(setup, pictures or in_history(keeper))]

    def fall_back(self, keeper: HistoryKeeper) -> Noticed | None:
        """Go on with the next model of the chain, until the turn ends. None when there is no other."""
        before = keeper.setup
        if not before.alternatives:
            return None
        self._next = self._next or before
        self._use(keeper, before.using(before.alternatives[0]))
        return Noticed(
            "warning",
            f"{before.route.id} failed; this turn goes on with {keeper.setup.route.id}",
            f"Its {window_text(keeper.setup)}.",
        )

    async def show(self, keeper: HistoryKeeper) -> None:
        """Move the client's meter to what is set, where that has another size. No turn of the model may
        run.
        """
        used, shown = keeper.shown or (None, None)
        size = self._size_ahead(keeper)
        if size != shown:
            await keeper.show_usage(used, size)

    def _use(self, keeper: HistoryKeeper, setup: Setup) -> None:
        before = keeper.setup
        self._known[before.route] = keeper.route, keeper.counts
        keeper.use(setup)
        keeper.route, keeper.counts = self._learned(keeper, setup.route)
        if (before.route.id, before.counter) != (setup.route.id, setup.counter):
            keeper.history = moved(keeper.history, setup.counter)

    def _learned(self, keeper: HistoryKeeper, route: Route) -> tuple[Route, Counts]:
        """What was learned of a model holds when it is used again."""
        return self._known.get(route) or (with_learned(route, keeper.state.learned), Counts())

    def _size_ahead(self, keeper: HistoryKeeper) -> MeterSize:
        """What the meter is measured against from the next turn on."""
        setup = self._next or keeper.setup
        same = setup.route == keeper.setup.route
        return meter_size(setup.profile, keeper.route if same else self._learned(keeper, setup.route)[0])

    def _unseen(self, setup: Setup, pictures: bool) -> list[Noticed]:
        """Once for each model that cannot see, as soon as there is a picture."""
        if setup.images or not pictures or setup.route.id in self._blind_to:
            return []
        self._blind_to.add(setup.route.id)
        text = f"{setup.route.id} gets a line in the place of each one. Another model may see them: /model"
        return [Noticed("warning", "This model cannot see pictures", text)]


def choice_of(state: SessionState) -> Choice:
    """The choice as it was stored."""
    return Choice(state.model, state.thought_level, state.profile)


def is_picture(block: Mapping[str, object]) -> bool:
    """Whether a content block is a picture."""
    return block.get("type") == "image"


def in_history(keeper: HistoryKeeper) -> bool:
    """Whether a picture is in what the model may be sent of the conversation."""
    return any(row.images for turn in keeper.history.turns for row in turn.rows)


def changes(before: Setup, after: Setup) -> list[Noticed]:
    """What a switch changes, a notice each."""
    told = []
    if before.route.id != after.route.id:
        told.append(Noticed("info", f"Now using {after.route.id} ({window_text(after)})"))
    if before.profile != after.profile:
        told.append(Noticed("info", f"Now using the profile {after.profile.name} ({kept_text(after)})"))
    return told


def window_text(setup: Setup) -> str:
    """The model's window in words."""
    budget = effective_context_budget(setup.profile, setup.route)
    return f"window {budget.window}" if budget.window_known else "window not known"


def kept_text(setup: Setup) -> str:
    """How much of a conversation is kept, in words."""
    budget = effective_context_budget(setup.profile, setup.route)
    return f"at most {budget.budget or budget.window} tokens"
