"""What is said in measured and tested conversations: the same words for the same turn. Knows no wire."""

import random

WORDS = """
    after again almost along also always among another any around away back because before began below
    between book both bring brought build call came carry change city clear close cold country cross cut
    deep door down draw dry each early earth east easy end enough even ever every face fall family far
    fast field find fire first five follow food found four full gave give gold good great green ground
    group grow
""".split()  # noqa: SIM905


def prose(chars: int, seed: int) -> str:
    """`chars` characters of sentences without repeats, the same for the same seed."""
    rng, out, size = random.Random(seed), [], 0
    while size < chars:
        out.append(" ".join(rng.choices(WORDS, k=rng.randint(5, 14))).capitalize() + ". ")
        size += len(out[-1])
    return "".join(out)[:chars]


def prompt_text(turn: int, chars: int) -> str:
    """A user prompt of about `chars` characters that carries its turn's number."""
    return f"TURN-{turn:05d} " + prose(max(0, chars - 11), turn)


def reply_text(turn: int, chars: int) -> str:
    """What the mock answers to the prompt of that turn."""
    return f"ANSWER-{turn:05d} " + prose(max(0, chars - 13), 1_000_000 + turn)
