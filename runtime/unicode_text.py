"""Text as Unicode allows it: JSON escapes and odd file names bring in what cannot be encoded. Pure."""


def mended(text: str) -> str:
    """The text with surrogate pairs joined and lone halves replaced, so that it can be encoded."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
