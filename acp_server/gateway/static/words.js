// What a notice means, in plain words. Pure: facts of the API in, sentences out.

import { count, num } from "./dom.js";

const REASONS = {
  "context token budget exceeded": "The next request would have been larger than the limit for this session.",
  "history turn limit exceeded": "There were more turns than this session keeps.",
  "context window overflow recovery": "The model refused a request as too large, so it was made smaller and sent again.",
  "running turn shortened to fit": "The turn alone was too large: long results of its older tool calls were cut short.",
  "loop context trimmed": "The turn made many tool calls; its older rounds are no longer sent.",
  "loop context summarized": "The turn made many tool calls; a summary stands for its older rounds.",
  "trimmed by the user": "It was asked for with a command.",
  "brought back by the user": "It was asked for with a command, and there was room.",
};

const STRATEGIES = {
  recent: "the newest turns stay",
  "head-tail": "the turn with the goal and the newest turns stay",
  count: "the newest rounds stay",
  "token-budget": "the rounds that fit a budget stay",
  summarize: "a summary stands for the rest",
  shorten: "long results are cut short",
  user: "as the user asked",
};

const SOURCES = {
  estimate: "estimated",
  calibrated: "estimated, on the provider's scale",
  provider: "counted by the provider",
};

export function reason(trim) {
  const known = Object.keys(REASONS).find((text) => trim.reason.startsWith(text));
  return known ? REASONS[known] : `The reason that was given: ${trim.reason}.`;
}

export function strategy(trim) {
  const text = STRATEGIES[trim.strategy];
  return text ? `${trim.strategy}: ${text}` : trim.strategy;
}

export function source(name) {
  return SOURCES[name] || name;
}

export function turnsOf(ranges) {
  const parts = ranges.map(({ first, last }) => (first === last ? num(first) : `${num(first)}–${num(last)}`));
  const many = ranges.length > 1 || ranges.some(({ first, last }) => first !== last);
  return parts.length ? `turn${many ? "s" : ""} ${parts.join(", ")}` : "";
}

// One line that says what happened.
export function headline(trim) {
  if (trim.type === "history_expanded") return `${count(trim.restored_turns, "earlier turn")} came back into view`;
  if (trim.strategy === "shorten") return `${count(trim.dropped_messages, "older tool result")} cut short`;
  if (!trim.dropped_turns) return `${count(trim.dropped_messages, "message")} of the running turn left the model's view`;
  const which = turnsOf(trim.dropped || []);
  const what = which ? which[0].toUpperCase() + which.slice(1) : count(trim.dropped_turns, "turn");
  return `${what} left the model's view`;
}

export function place(trim) {
  if (trim.turn === null || trim.turn === undefined) return "between turns";
  return trim.call > 1 ? `in turn ${num(trim.turn)}, before its request ${num(trim.call)}` : `in turn ${num(trim.turn)}`;
}

export function figures(tokens) {
  const before = `${num(tokens.before)} tokens before (${source(tokens.before_source)})`;
  return `${before}, ${num(tokens.after)} after (${source(tokens.after_source)})`;
}

// The numbers of a notice in one line.
export function inShort(trim) {
  const where = place(trim);
  const gone = trim.dropped_turns ? `${count(trim.dropped_messages, "message")} of ${count(trim.dropped_turns, "turn")} left out`
    : trim.dropped_messages ? `${count(trim.dropped_messages, "message")} left out` : "";
  const tokens = trim.tokens ? `${num(trim.tokens.before)} → ${num(trim.tokens.after)} tokens` : "";
  const kept = `${count(trim.kept_turns, "turn")} in view`;
  return [where[0].toUpperCase() + where.slice(1), gone, kept, tokens].filter(Boolean).join(" · ");
}

export const VIEWS = {
  sent: ["in view", "The model gets this turn whole."],
  collapsed: ["collapsed", "The model gets the prompt and the answer; the tool calls between them are left out."],
  dropped: ["dropped", "The model no longer gets this turn. It stays in the transcript."],
  never_sent: ["never sent", "This was answered without the model."],
  between: ["", ""],
};

export const OUTCOMES = {
  cancelled: "cancelled by the user",
  error: "ended with an error",
  no_model: "no model was set",
  refused: "refused",
  crash: "broken off: its process died",
  running: "running",
  open: "not ended yet",
};
