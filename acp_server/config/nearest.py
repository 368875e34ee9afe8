"""What a tree leaves unsaid, and the closest name to one that is not there. Pure."""

from collections.abc import Iterable

from acp_server.config.keys import Tree, printable, table

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
