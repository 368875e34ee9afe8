// The notices of a session, newest first, each explained with its numbers.

import { clear, count, h, num, put } from "./dom.js";
import { figures, headline, inShort, place, reason, strategy } from "./words.js";

export class Notices {
  constructor(more) {
    this.items = h("ol", { class: "notices" });
    this.older = h("button", { type: "button", onclick: more }, "Earlier notices");
    this.count = h("p", { class: "dim small" });
    this.node = h("section", { class: "card", id: "notices", "aria-labelledby": "notices-title" },
      h("header", null, h("h2", { id: "notices-title" }, "Notices"), this.count), this.items, this.older);
  }

  show(trims, total, earlier) {
    clear(this.count, total ? count(total, "notice") : "");
    const none = h("li", { class: "dim" }, "Nothing has left the model's view.");
    clear(this.items, trims.length ? [...trims].reverse().map((trim) => h("li", null, notice(trim))) : none);
    this.older.hidden = !earlier;
  }
}

export function notice(trim) {
  const node = h("article", { class: `notice ${trim.type === "history_expanded" ? "expanded" : ""}` },
    h("h3", null, headline(trim)),
    h("p", null, reason(trim), trim.note ? ` ${trim.note}` : ""),
    h("p", { class: "dim small number" }, inShort(trim)));
  put(node, h("details", { "data-open": `notice ${trim.entry}` }, h("summary", null, "All its numbers"), numbers(trim)));
  return node;
}

function numbers(trim) {
  const pairs = [
    ["Where", place(trim)],
    ["Messages left out", trim.dropped_messages ? num(trim.dropped_messages) : null],
    ["Turns left out", trim.dropped_turns ? num(trim.dropped_turns) : null],
    ["Turns that came back", trim.restored_turns ? num(trim.restored_turns) : null],
    ["Turns kept", num(trim.kept_turns)],
    ["Oldest kept turn", trim.first_kept_turn ? num(trim.first_kept_turn) : null],
    ["Reason", trim.reason],
    ["Strategy", strategy(trim)],
    ["Limit", trim.tokens && trim.tokens.budget !== null ? `${num(trim.tokens.budget)} tokens` : null],
    ["Tokens", trim.tokens ? figures(trim.tokens) : "not counted: the number of turns decided"],
    ["Summary", trim.summary ? `${trim.summary.text}${trim.summary.text.length < trim.summary.length ? " …" : ""}` : null],
    ["No summary", trim.summary_failure],
    ["Trim id", trim.trim_id],
  ];
  return h("dl", null, pairs.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}
