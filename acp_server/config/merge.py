"""Layers to one tree, the layer that had the last word on each key, and what the tree leaves unsaid. Pure.

Also the closest name to one that is not there. Knows no source and no schema.
"""

from collections.abc import Iterable

from acp_server.config.layers import DEFAULT, Key, Layer, Origin, Tree, leaves, printable, put, subtree, table


class Merged:
    """The effective tree. owners: the layer that set each leaf."""

    def __init__(self) -> None:
        self.tree: Tree = {}
        self.owners: dict[Key, Layer] = {}

    def owner(self, key: Key) -> Layer | None:
        """The layer that set `key`, or that opened the table around it."""
        for end in range(len(key), 0, -1):
            if key[:end] in self.owners:
                return self.owners[key[:end]]
        return next((layer for leaf, layer in self.owners.items() if leaf[: len(key)] == key), None)

    def origin(self, key: Key) -> Origin:
        """Where the value of `key` is from; the default for a key that nothing set."""
        owner = self.owners.get(key)
        return owner.find(key) if owner else DEFAULT

    def place(self, key: Key) -> str:
        """Where `key`, or the table around it, was written: `file:line`, a variable, a flag."""
        owner = self.owner(key)
        return str(owner.find(key)) if owner else ""

    def says(self, key: Key, text: str) -> str:
        """A message about a key, led by the place that set it."""
        owner = self.owner(key)
        return owner.says(key, text) if owner else text


def merge(layers: Iterable[Layer]) -> Merged:
    """Weaker first. Tables and lists of rules are joined, all else is replaced by what comes later."""
    merged = Merged()
    for layer in layers:
        _undo(merged, layer)
        for key, value in leaves(layer.tree):
            if value == {} and isinstance(subtree(merged.tree, key), dict):
                continue
            put(merged.tree, key, _joined(merged, key, value))
            merged.owners[key] = layer
    return merged


def _joined(merged: Merged, key: Key, value: object) -> object:
    """Permission rules of all sources count: no later one may take back what an earlier one denies.

    The same holds for what is to be taken out of texts.
    """
    before = subtree(merged.tree, key)
    if key[0] in ("permissions", "redact") and isinstance(value, list) and isinstance(before, list):
        return [*before, *(rule for rule in value if rule not in before)]
    return value


def _undo(merged: Merged, layer: Layer) -> None:
    """What a later source's choice makes void.

    A preset is a whole profile, so keys that weaker sources gave that profile go. A model was named for the
    provider it stood with, so it goes when a later source picks another provider.
    """
    for key, value in leaves(layer.tree):
        match key:
            case ("runtime_profiles", _, "preset"):
                _forget(merged, key[:2])
            case ("agents", _, "provider") if subtree(merged.tree, key) not in (None, value):
                _forget(merged, (*key[:2], "model"))
            case _:
                pass


def _forget(merged: Merged, key: Key) -> None:
    around = subtree(merged.tree, key[:-1])
    if isinstance(around, dict):
        around.pop(key[-1], None)
    for leaf in [leaf for leaf in merged.owners if leaf[: len(key)] == key]:
        del merged.owners[leaf]


IMPLIED_AGENT = "default"
MOST_NAMES = 8


def default_agent(tree: Tree) -> str | None:
    """The agent that a session starts with: the one named, else `default`, else the only one."""
    named = tree.get("default_agent")
    if isinstance(named, str):
        return named
    agents = table(tree, "agents")
    if not agents or IMPLIED_AGENT in agents:
        return IMPLIED_AGENT
    return next(iter(agents)) if len(agents) == 1 else None


def only_provider(tree: Tree) -> str | None:
    """The provider's name if exactly one is configured."""
    providers = table(tree, "providers")
    return next(iter(providers)) if len(providers) == 1 else None


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to `word`, or None."""
    # Loaded here alone: only an error needs it.
    import difflib

    words = sorted(known)
    close = difflib.get_close_matches(word[:80].lower(), [name.lower() for name in words], n=1, cutoff=0.5)
    return next((name for name in words if name.lower() in close), None)


def hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?`, or the names there are, or nothing."""
    names = sorted(known)
    found = nearest(word, names)
    if found:
        return f'; did you mean "{printable(found)}"?'
    if not names:
        return ""
    more = ", …" if len(names) > MOST_NAMES else ""
    return f" (there is {', '.join(printable(name) for name in names[:MOST_NAMES])}{more})"
