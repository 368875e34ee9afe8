"""The fixed texts that the runtime puts into a history or a reply, and text as Unicode allows it. Pure."""

CANCELLED_RESULT = "[cancelled] stopped by the user before it finished"
NOT_RUN_RESULT = "[cancelled] not run: stopped by the user"
INTERRUPTED_RESULT = (
    "[interrupted: no result was recorded] the agent stopped before this finished; it may or may not have run"
)
FAILED_TURN_RESULT = "[interrupted: no result was recorded] the turn ended with an error before this finished"

NOTES = {
    "cancelled": "[this turn was cancelled by the user; do not go on with it unless asked to]",
    "error": "[this turn ended with an error before the answer was complete]",
    "crash": "[this turn was interrupted before the answer was complete]",
}
"""The line that tells the model how a broken turn ended, by outcome."""

CONTINUE = (
    "[Tool results]\nNothing more came in. The turn above was interrupted, and the user asks you to go on "
    "with it from where it stopped. Results that you have stand: do not make those calls again."
)
CONTINUE_CHECKED = (
    f"{CONTINUE} Some calls are marked as stopped before they finished. The user knows; look at the state of "
    "things before you repeat one of them."
)
CONTINUING = {"/continue": CONTINUE, "/continue anyway": CONTINUE_CHECKED}
"""Command -> the prompt that it stands for. By its first line it joins the turn that it goes on with."""
UNFINISHED = (INTERRUPTED_RESULT, FAILED_TURN_RESULT, CANCELLED_RESULT)
"""Results of calls that may have had effects."""

LIMIT_PROMPT = (
    "[The limit of tool calls for this turn is reached. Answer now with what you have, without tools; "
    "say what is still open.]"
)
LIMIT_LINE = "[Stopped at this turn's limit of {limit} tool rounds.]"
RETRYING = "{why} Trying again in {seconds} s (try {number} of {of})."
NO_ANSWER = "[The model gave no answer.]"
UNREADABLE_CALL = "The tool call could not be read: {why}. Send it again with valid JSON arguments."
UNKNOWN_TOOL = "There is no tool named {name!r}. Available: {names}."
BUG_IN_TOOL = "The tool failed for an internal reason."


def mended(text: str) -> str:
    """The text with surrogate pairs joined and lone halves replaced, so that it can be encoded."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
