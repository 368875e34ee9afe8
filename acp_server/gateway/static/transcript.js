// The transcript: every turn, marked with what the model still gets of it, and why.

import { badge, clear, count, h, num, put, visible } from "./dom.js";
import { notice } from "./notices.js";
import { OUTCOMES, VIEWS, place, reason } from "./words.js";

export class Transcript {
  // more: asks for earlier turns. whole: gives a turn with all of its texts, from its first entry.
  constructor(more, whole) {
    this.whole = whole;
    this.shown = new Map();
    this.items = h("div", { class: "turns" });
    this.older = h("button", { type: "button", onclick: more }, "Earlier turns");
    this.node = h("section", { class: "card", id: "transcript", "aria-labelledby": "transcript-title" },
      h("header", null, h("h2", { id: "transcript-title" }, "Transcript")), this.older, this.items);
  }

  show(turns, earlier) {
    this.older.hidden = !earlier;
    if (!turns.length) {
      this.shown.clear();
      clear(this.items, h("p", { class: "dim" }, "Nothing has been said yet."));
      return;
    }
    const kept = new Map();
    const nodes = turns.map((turn) => {
      const text = JSON.stringify(turn), known = this.shown.get(turn.entry);
      const made = known && known.text === text ? known : { text, node: keepOpen(known?.node, this.card(turn)) };
      kept.set(turn.entry, made);
      return made.node;
    });
    this.shown = kept;
    // Only what changed is touched: what is read or focused stays where it is.
    nodes.forEach((node, at) => {
      if (this.items.childNodes[at] !== node) this.items.insertBefore(node, this.items.childNodes[at] || null);
    });
    while (this.items.childNodes.length > nodes.length) this.items.lastChild.remove();
  }

  card(turn) {
    const [label, meaning] = VIEWS[turn.view];
    if (turn.view === "between") return h("article", { class: "turn-card between" }, turn.parts.map((part) => this.part(part, turn)));
    const title = `turn-${turn.entry}`;
    const node = h("article", { class: `turn-card ${turn.view}`, "aria-labelledby": title, "data-turn": turn.number },
      h("header", null, h("h3", { id: title }, `Turn ${num(turn.number)}`), badge(label, turn.view),
        turn.pinned && badge("pinned"), turn.goal && badge("sets the goal"),
        OUTCOMES[turn.outcome] && badge(OUTCOMES[turn.outcome], turn.outcome)));
    if (turn.view !== "sent") put(node, h("p", { class: "why" }, why(turn, meaning)));
    put(node, h("div", { class: "prompt" }, h("p", { class: "said-by" }, "Prompt"), this.text(turn.prompt, turn),
      turn.attachments.length > 0 && h("p", { class: "dim small" }, `With ${turn.attachments.join(", ")}.`)));
    put(node, turn.parts.map((part) => this.part(part, turn)));
    return node;
  }

  part(part, turn) {
    switch (part.type) {
      case "trim": return notice(part.trim);
      case "tool": return this.tool(part, turn);
      case "thought": return h("details", { "data-open": `thought ${part.text.length}` },
        h("summary", null, "Thought"), h("div", { class: "thought" }, this.text(part.text, turn)));
      case "note": return h("div", null, h("p", { class: "said-by" }, "Note"), this.text(part.text, turn));
      default: return h("div", null, h("p", { class: "said-by" }, "Answer"), this.text(part.text, turn));
    }
  }

  tool(part, turn) {
    const node = h("details", { class: `tool ${part.status}`, "data-open": part.call_id },
      h("summary", null, part.title || part.name, " ", badge(part.status)));
    put(node, h("p", { class: "said-by" }, `Call of ${part.name}`), this.text(part.input, turn, "pre"));
    for (const diff of part.diffs) {
      put(node, h("p", { class: "said-by" }, diff.old ? `Change of ${diff.path}` : `New file ${diff.path}`),
        diff.old && h("pre", { class: "old" }, lines("- ", diff.old.text)), h("pre", { class: "new" }, lines("+ ", diff.new.text)));
    }
    if (part.content.length) put(node, h("p", { class: "said-by" }, "Result"), this.text(part.content, turn, "pre"));
    return node;
  }

  // A text, and if it was cut a button that brings all of the turn's.
  text(found, turn, tag = "div") {
    const shown = h(tag, { class: "text", dir: "auto" }, found.text);
    const left = found.length - found.text.length;
    if (left <= 0) return shown;
    const more = h("button", { type: "button", class: "plain", onclick: async () => {
      more.disabled = true;
      try {
        const whole = await this.whole(turn.entry);
        if (whole) this.replace(turn.entry, whole);
      } finally {
        more.disabled = false;
      }
    } }, `Show more (${count(left, "character")} are cut)`);
    return [shown, more];
  }

  replace(entry, turn) {
    const known = this.shown.get(entry);
    if (!known) return;
    const node = keepOpen(known.node, this.card(turn));
    known.node.replaceWith(node);
    known.node = node;
    node.querySelector("summary, button")?.focus();
  }
}

function why(turn, meaning) {
  if (turn.view !== "dropped" || !turn.dropped_by) return meaning;
  const trim = turn.dropped_by;
  return `${meaning} It left ${place(trim)} (${trim.reason}). ${reason(trim)}`;
}

function lines(sign, text) {
  return visible(text).split("\n").map((line) => sign + line).join("\n");
}

// What was unfolded in the old form of a turn stays unfolded in the new one.
function keepOpen(before, after) {
  if (!before) return after;
  const open = new Set([...before.querySelectorAll("details[open][data-open]")].map((node) => node.dataset.open));
  for (const node of after.querySelectorAll("details[data-open]")) if (open.has(node.dataset.open)) node.open = true;
  return after;
}
