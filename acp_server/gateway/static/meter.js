// What fills the next request: a stacked bar, and the same as a table.

import { clear, count, h, num, percent } from "./dom.js";

export class Meter {
  constructor() {
    this.sum = h("p", { class: "number" });
    this.bar = h("div", { class: "bar", role: "img" });
    this.legend = h("ul", { class: "legend" });
    this.rows = h("tbody");
    this.facts = h("p", { class: "dim small" });
    this.node = h("section", { class: "card", id: "context", "aria-labelledby": "context-title" },
      h("header", null, h("h2", { id: "context-title" }, "Context now"), this.sum),
      this.bar, this.legend, this.facts,
      h("details", null, h("summary", null, "Every piece as a table"),
        h("div", { class: "scroll" }, h("table", null,
          h("thead", null, h("tr", null,
            h("th", { scope: "col" }, "Piece"), h("th", { scope: "col", class: "number" }, "Tokens"),
            h("th", { scope: "col", class: "number" }, "of them tool rows"), h("th", { scope: "col" }, "Remarks"))),
          this.rows))));
  }

  fail(message) {
    clear(this.sum, message);
    clear(this.bar); clear(this.legend); clear(this.rows); clear(this.facts);
  }

  show(found) {
    const full = `${num(found.used)} of ${num(found.trims_above)} tokens`;
    clear(this.sum, h("b", null, full), ` (${percent(found.used, found.trims_above)})`);
    this.bar.setAttribute("aria-label", spoken(found));
    const scale = found.estimated > 0 ? found.used / found.estimated : 1;
    clear(this.bar, pieces(found).map((piece) => drawn(piece, scale)), share("free", found.free, "Free"));
    clear(this.legend, legend(found));
    clear(this.rows, pieces(found).map(row), row({ name: "Free before a trim", tokens: found.free, remarks: "" }));
    clear(this.facts, facts(found));
  }
}

function pieces(found) {
  const fixed = [
    { name: "System prompt", kind: "system", tokens: found.system },
    { name: "Tools on offer", kind: "tools", tokens: found.tools },
    { name: "Line about dropped turns", kind: "beside", tokens: found.breadcrumb },
    { name: "Notes about dropped turns", kind: "beside", tokens: found.notes },
  ];
  const turns = found.turns.map((turn) => ({
    name: `Turn ${turn.turn ?? "?"}`, kind: "turn", tokens: turn.tokens, rows: turn.tool_tokens, turn,
    remarks: remarks(turn),
  }));
  return [...fixed.filter((piece) => piece.tokens > 0), ...turns];
}

function remarks(turn) {
  const told = [
    turn.collapsed && "collapsed", turn.saved_tokens > 0 && `${num(turn.saved_tokens)} saved`,
    turn.pinned && "pinned", turn.goal && "the goal's turn", turn.leaves_next && "leaves next",
  ];
  return told.filter(Boolean).join(", ");
}

function share(kind, tokens, title) {
  const node = h("div", { class: `share ${kind}`, title });
  node.style.setProperty("flex-grow", String(Math.max(tokens, 0)));
  return node;
}

function drawn(piece, scale) {
  const turn = piece.turn;
  const kinds = [piece.kind, turn?.collapsed && "collapsed", turn?.leaves_next && "next"].filter(Boolean).join(" ");
  const title = `${piece.name}: ${count(piece.tokens, "token")}${piece.remarks ? `, ${piece.remarks}` : ""}`;
  const node = share(kinds, piece.tokens * scale, title);
  if (turn) {
    const said = h("div", { class: "said" }), rows = h("div", { class: "rows" });
    said.style.setProperty("flex-grow", String(piece.tokens - piece.rows));
    rows.style.setProperty("flex-grow", String(piece.rows));
    node.append(said, rows);
  }
  return node;
}

function row(piece) {
  return h("tr", null, h("th", { scope: "row" }, piece.name), h("td", { class: "number" }, num(piece.tokens)),
    h("td", { class: "number" }, piece.rows ? num(piece.rows) : ""), h("td", null, piece.remarks || ""));
}

function legend(found) {
  const older = found.turns.filter((turn) => turn.collapsed);
  const sum = (turns) => turns.reduce((total, turn) => total + turn.tokens, 0);
  const entries = [
    ["system", "System prompt", found.system], ["tools", "Tools", found.tools],
    ["beside", "About dropped turns", found.breadcrumb + found.notes],
    ["older", `${count(older.length, "collapsed turn")}`, sum(older)],
    ["whole", `${count(found.turns.length - older.length, "whole turn")}`, sum(found.turns) - sum(older)],
    ["toolrows", "of them tool rows", found.tool_rows], ["free", "Free", found.free],
  ];
  return entries.filter(([kind, , tokens]) => tokens > 0 || kind === "free").map(([kind, name, tokens]) =>
    h("li", null, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), name, h("b", null, num(tokens))));
}

function facts(found) {
  const window = found.window ? `the model's window has ${num(found.window)}` : "the model's window is not known";
  const gone = found.dropped_turns ? `${count(found.dropped_turns, "turn")} dropped so far. ` : "";
  const live = found.source === "live" ? "As the open session has it now." : "Made from the store, under today's settings.";
  return `A trim starts above ${num(found.trims_above)} tokens; ${window}. ${gone}${live}`;
}

function spoken(found) {
  const turns = found.turns.reduce((total, turn) => total + turn.tokens, 0);
  return `${num(found.used)} of ${num(found.trims_above)} tokens are used: system prompt ${num(found.system)}, tools ` +
    `${num(found.tools)}, ${count(found.turns.length, "turn")} ${num(turns)}, of them tool rows ` +
    `${num(found.tool_rows)}; ${num(found.free)} are free.`;
}
