// The requests of a session as a picture: a bar each, stacked by what fills it; trims and collapses are marked.

import { clear, count, h, num, percent, put, s } from "./dom.js";
import { headline, reason } from "./words.js";

const PARTS = [
  ["fixed", "System prompt and tools"], ["beside", "About dropped turns"], ["older", "Collapsed turns"],
  ["whole", "Whole turns"], ["running", "The running turn"],
];
const HEIGHT = 190, TOP = 24, BOTTOM = 20, LEFT = 54, WIDEST = 26, NARROWEST = 7;

export class Timeline {
  constructor(more) {
    this.points = [];
    this.trims = new Map();
    this.at = -1;
    this.chart = h("div", {
      class: "chart", tabindex: "0", role: "listbox", id: "chart", "aria-labelledby": "timeline-title",
      "aria-describedby": "timeline-how", onkeydown: (event) => this.key(event),
      onmouseleave: () => this.tell(this.at),
      // Read out while the keys are here; what changes by itself is none of a listener's business.
      onfocus: () => this.told.setAttribute("aria-live", "polite"), onblur: () => this.told.setAttribute("aria-live", "off"),
    });
    // How wide a bar is hangs on the room for all.
    new ResizeObserver(() => this.chart.clientWidth !== this.drawnFor && this.fit()).observe(this.chart);
    this.told = h("div", { class: "told", "aria-live": "off" });
    this.earlier = h("button", { type: "button", onclick: more }, "Earlier requests");
    this.node = h("section", { class: "card", id: "timeline", "aria-labelledby": "timeline-title" },
      h("header", null, h("h2", { id: "timeline-title" }, "Requests over time"), this.earlier),
      h("p", { class: "unseen", id: "timeline-how" },
        "The arrow keys go from request to request; Page Up and Page Down go from trim to trim."),
      this.chart, legend(), this.told);
  }

  show(points, trims, earlier) {
    const chosen = this.points[this.at];
    const atEnd = this.at < 0 || this.at === this.points.length - 1;
    this.points = points;
    this.trims = new Map(trims.map((trim) => [trim.trim_id, trim]));
    this.earlier.hidden = !earlier;
    const same = points.findIndex((one) => chosen && one.turn === chosen.turn && one.call === chosen.call);
    this.at = atEnd || same < 0 ? points.length - 1 : same;
    this.fit();
  }

  // Drawn anew. Who looks at the newest goes on doing so; nobody else's view moves, the page's neither.
  fit() {
    const scrolled = this.chart.scrollLeft;
    this.draw();
    this.mark(this.at);
    this.chart.scrollLeft = this.at === this.points.length - 1 ? this.chart.scrollWidth : scrolled;
  }

  draw() {
    this.drawnFor = this.chart.clientWidth;
    const points = this.points;
    if (!points.length) {
      clear(this.chart, h("p", { class: "dim" }, "No request has been made yet."));
      return;
    }
    const room = (this.chart.clientWidth || 880) - LEFT - 8;
    const width = Math.max(NARROWEST, Math.min(WIDEST, Math.floor((4 * room) / points.length) / 4));
    const most = Math.max(...points.map((one) => Math.max(one.estimated, one.reported || 0, one.trims_above || 0)));
    const y = (tokens) => TOP + HEIGHT * (1 - tokens / most);
    const across = LEFT + width * points.length + 8;
    const svg = s("svg", { width: across, height: TOP + HEIGHT + BOTTOM, role: "presentation" });
    for (const part of [0, 0.5, 1]) {
      put(svg, s("line", { class: "grid", x1: LEFT, x2: across, y1: y(most * part), y2: y(most * part) }),
        s("text", { x: LEFT - 6, y: y(most * part) + 4, "text-anchor": "end", "aria-hidden": "true" }, short(most * part)));
    }
    points.forEach((one, at) => svg.append(this.bar(one, at, LEFT + at * width, width, y)));
    put(svg, limit(points, width, y), numbers(points, width));
    clear(this.chart, svg);
  }

  bar(one, at, x, width, y) {
    const node = s("g", {
      class: "request", id: `request-${at}`, role: "option", "aria-selected": "false", "aria-label": spoken(one),
      onclick: () => this.choose(at), onmouseenter: () => this.tell(at),
    });
    let under = 0;
    for (const [name] of PARTS) {
      if (!one[name]) continue;
      put(node, s("rect", {
        class: name, x: x + 1, width: Math.max(width - 2, 1), y: y(under + one[name]),
        height: Math.max(y(under) - y(under + one[name]), 0.5),
      }));
      under += one[name];
    }
    const middle = x + width / 2;
    if (one.reported) put(node, s("line", { class: "count", x1: x + 1, x2: x + width - 1, y1: y(one.reported), y2: y(one.reported) }));
    if (one.trims.length) put(node, s("path", { class: "trim", d: `M${middle - 5} 4h10l-5 9z` }));
    const before = this.points[at - 1];
    if (before && one.collapsed_turns > before.collapsed_turns) put(node, s("circle", { class: "fold", cx: middle, cy: 18, r: 2.5 }));
    put(node, s("rect", { class: "hit", x, width, y: 0, height: TOP + HEIGHT }));
    return node;
  }

  choose(at) {
    this.mark(at);
    const node = this.chart.querySelector(`#request-${at}`);
    if (node) node.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  mark(at) {
    this.chart.querySelector(".chosen")?.classList.remove("chosen");
    this.chart.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    this.at = at;
    const node = this.chart.querySelector(`#request-${at}`);
    if (node) {
      node.classList.add("chosen");
      node.setAttribute("aria-selected", "true");
      this.chart.setAttribute("aria-activedescendant", node.id);
    }
    this.tell(at);
  }

  tell(at) {
    const one = this.points[at];
    if (one) clear(this.told, explained(one, this.trims));
    else clear(this.told);
  }

  key(event) {
    const last = this.points.length - 1;
    const trim = (step) => {
      for (let at = this.at + step; at >= 0 && at <= last; at += step) if (this.points[at].trims.length) return at;
      return this.at;
    };
    const to = {
      ArrowLeft: () => Math.max(this.at - 1, 0), ArrowRight: () => Math.min(this.at + 1, last),
      Home: () => 0, End: () => last, PageUp: () => trim(-1), PageDown: () => trim(1),
    }[event.key];
    if (!to || last < 0) return;
    event.preventDefault();
    this.choose(to());
  }
}

function short(tokens) {
  return tokens >= 10000 ? `${num(Math.round(tokens / 100) / 10)}k` : num(Math.round(tokens));
}

function limit(points, width, y) {
  const steps = points.flatMap((one, at) => one.trims_above === null ? []
    : [`${at && points[at - 1].trims_above !== null ? "L" : "M"}${LEFT + at * width} ${y(one.trims_above)}h${width}`]);
  return s("path", { class: "limit", d: steps.join(" ") });
}

function numbers(points, width) {
  const every = Math.max(1, Math.ceil(34 / width));
  let last = -every;
  return points.map((one, at) => {
    if (one.call !== 1 || at - last < every) return null;
    last = at;
    return s("text", { x: LEFT + at * width + 1, y: TOP + HEIGHT + 14, "aria-hidden": "true" }, num(one.turn));
  });
}

function legend() {
  const parts = [...PARTS].reverse().map(([kind, name]) =>
    h("li", null, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), name));
  const mark = (kind, sign, name) => h("li", null, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }, sign), name);
  return h("ul", { class: "legend" }, parts, mark("trim", "▼", "a trim"), mark("fold", "●", "more turns collapsed"),
    mark("trim", "┄", "a trim starts above"), mark("fold", "—", "as the provider counted it"));
}

function spoken(one) {
  const trims = one.trims.length ? `, after ${count(one.trims.length, "trim")}` : "";
  return `Turn ${one.turn}, request ${one.call}: ${count(one.used, "token")}${trims}`;
}

function explained(one, trims) {
  const parts = [...PARTS].filter(([name]) => one[name] > 0).map(([name, text]) => `${text.toLowerCase()} ${num(one[name])}`);
  const limit = one.trims_above ? ` of ${num(one.trims_above)} (${percent(one.used, one.trims_above)})` : "";
  const counted = one.reported ? `; the provider counted ${num(one.reported)}` : "";
  const lines = [
    h("p", null, h("b", null, `Turn ${num(one.turn)}, request ${num(one.call)}`), `: ${num(one.used)} tokens${limit}${counted}.`),
    h("p", { class: "dim" }, `${parts.join(", ")}. ${count(one.kept_turns, "turn")} in view, ${num(one.collapsed_turns)} of them collapsed.`),
  ];
  for (const id of one.trims) {
    const trim = trims.get(id);
    const text = trim ? `Before it: ${headline(trim)}. ${reason(trim)}`
      : `Before it: ${count(one.dropped_messages, "message")} left the model's view.`;
    lines.push(h("p", { class: "why" }, text));
  }
  return lines;
}
