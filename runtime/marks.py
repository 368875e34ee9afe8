"""The fixed texts that the runtime itself puts into a history or a reply. One place, so that they agree."""

CANCELLED_RESULT = "[cancelled] stopped by the user before it finished"
NOT_RUN_RESULT = "[cancelled] not run: stopped by the user"
INTERRUPTED_RESULT = (
    "[interrupted: no result was recorded] the agent stopped before this finished; it may or may not have run"
)
FAILED_TURN_RESULT = "[interrupted: no result was recorded] the turn ended with an error before this finished"

NOTES = {
    "cancelled": "[this turn was cancelled by the user]",
    "error": "[this turn ended with an error before the answer was complete]",
    "crash": "[this turn was interrupted before the answer was complete]",
}
"""The line that tells the model how a broken turn ended, by outcome."""

LIMIT_PROMPT = (
    "[The limit of tool calls for this turn is reached. Answer now with what you have, without tools; "
    "say what is still open.]"
)
LIMIT_LINE = "[Stopped at this turn's limit of {limit} tool rounds.]"
NO_ANSWER = "[The model gave no answer.]"
UNREADABLE_CALL = "The tool call could not be read: {why}. Send it again with valid JSON arguments."
UNKNOWN_TOOL = "There is no tool named {name!r}. Available: {names}."
BUG_IN_TOOL = "The tool failed for an internal reason."
