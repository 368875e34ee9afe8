// One session: its parts, kept up to date while it is shown.

import { Refused, follow, get, session } from "./api.js";
import { badge, clear, count, h, num, throttled, when } from "./dom.js";
import { Meter } from "./meter.js";
import { Notices } from "./notices.js";
import { Timeline } from "./timeline.js";
import { Transcript } from "./transcript.js";
import { headline, reason } from "./words.js";

const LAST = Number.MAX_SAFE_INTEGER;
const TURNS = 10, REQUEST_TURNS = 20, NOTICES = 20, MOST = 100, WHOLE_TEXT = 200000;
const PAUSE = 500;

export class SessionView {
  // news: says something to a screen reader. feed: shows how the stream stands. failed: is told of errors.
  constructor(id, { news, feed, failed, changed }) {
    Object.assign(this, { id, news, feed, failed, changed });
    this.ending = new AbortController();
    this.turns = new Pages("turns", (turn) => turn.entry);
    this.requests = new Pages("requests", (one) => one.turn * 1e6 + one.call);
    this.trims = new Pages("trims", (trim) => trim.entry);
    this.meter = new Meter();
    this.timeline = new Timeline(() => this.earlier(this.requests, "timeline", REQUEST_TURNS));
    this.notices = new Notices(() => this.earlier(this.trims, "trims", NOTICES));
    this.transcript = new Transcript(() => this.earlier(this.turns, "transcript", TURNS), (entry) => this.whole(entry));
    this.title = h("h1", { dir: "auto", tabindex: "-1" });
    this.facts = h("div", { class: "facts" });
    this.node = h("div", null,
      h("header", { class: "head" }, h("p", null, h("a", { class: "back", href: "#/" }, "← All sessions")), this.title, this.facts, jump()),
      this.meter.node, this.timeline.node, this.notices.node, this.transcript.node);
    this.refresh = throttled(() => this.load(), PAUSE);
    this.recheck = false;
  }

  async open() {
    await this.load();
    const told = (event) => this.told(event);
    const state = (how) => {
      this.feed(how);
      if (how === "live") this.refreshAll();
    };
    follow({ session_id: this.id }, { told, state, signal: this.ending.signal });
  }

  close() {
    this.ending.abort();
    this.refresh.stop();
  }

  told(event) {
    if (event.type === "history_trimmed") {
      this.news(`${headline(event)}. ${reason(event)} Turns that stay in view: ${num(event.kept_turns)}.`);
      this.refreshAll();
    } else if (event.type === "events_lost") this.refreshAll();
    else this.refresh();
    if (event.type === "title_changed") this.changed();
  }

  // Turns that were shown before may be marked otherwise now.
  refreshAll() {
    this.recheck = true;
    this.refresh();
  }

  get(part, query) {
    return get(session(this.id, part), query, this.ending.signal);
  }

  async load() {
    const all = this.recheck;
    this.recheck = false;
    try {
      await Promise.all([this.loadHead(), this.loadMeter(), this.loadRequests(), this.loadTurns(all)]);
    } catch (error) {
      if (!this.ending.signal.aborted) this.failed(error);
    }
  }

  async loadHead() {
    const found = await this.get("", {});
    const name = found.title || "Without a title";
    if (this.title.textContent !== name) clear(this.title, name);
    document.title = `${this.title.textContent} – Wholeturn`;
    clear(this.facts, found.running && badge("running", "running"), h("span", null, found.cwd),
      h("span", null, count(found.turns, "turn")), found.dropped_turns > 0 && h("span", null, `${num(found.dropped_turns)} dropped`),
      h("span", null, "changed ", when(found.updated_at)), found.goal && h("span", null, `Goal: ${found.goal}`));
    this.total = found.trims;
  }

  async loadMeter() {
    try {
      this.meter.show(await this.get("context", {}));
    } catch (error) {
      // Settings that cannot be read hide the meter alone.
      if (!(error instanceof Refused) || error.status !== 503) throw error;
      this.meter.fail(error.message);
    }
  }

  async loadRequests() {
    const [requests, trims] = await Promise.all([
      this.get("timeline", { before: LAST, limit: REQUEST_TURNS }), this.get("trims", { before: LAST, limit: NOTICES }),
    ]);
    this.requests.newest(requests);
    this.trims.newest(trims);
    this.drawRequests();
  }

  drawRequests() {
    this.timeline.show(this.requests.all(), this.trims.all(), this.requests.before);
    this.notices.show(this.trims.all(), this.total, this.trims.before);
  }

  async loadTurns(all) {
    this.turns.newest(await this.get("transcript", { before: LAST, limit: TURNS }));
    const known = this.turns.all();
    if (all && known.length > TURNS) {
      for (let after = known[0].entry - 1; after !== null && after !== undefined;) {
        const page = await this.get("transcript", { after, limit: MOST });
        this.turns.put(page);
        after = page.next_after;
      }
    }
    this.drawTurns();
  }

  drawTurns() {
    this.transcript.show(this.turns.all(), this.turns.before);
  }

  async earlier(pages, part, limit) {
    try {
      pages.earlier(await this.get(part, { before: pages.before, limit }));
      this.drawRequests();
      this.drawTurns();
    } catch (error) {
      if (!this.ending.signal.aborted) this.failed(error);
    }
  }

  async whole(entry) {
    const page = await this.get("transcript", { after: entry - 1, limit: 1, text_limit: WHOLE_TEXT });
    return page.turns[0];
  }
}

// What was fetched of something that comes in pages: each part once, in order, with the place before the first.
class Pages {
  constructor(name, key) {
    Object.assign(this, { name, key, before: null, begun: false, found: new Map() });
  }

  put(page) {
    for (const one of page[this.name]) this.found.set(this.key(one), one);
  }

  newest(page) {
    const first = page[this.name][0];
    const known = this.all().at(-1);
    // So much is new that there would be a gap: begin anew.
    const gap = known && first && this.key(first) > this.key(known) && page.previous_before !== null;
    if (gap || !first) this.found.clear();
    if (!this.begun || gap) this.before = page.previous_before;
    this.begun = true;
    this.put(page);
  }

  earlier(page) {
    this.before = page.previous_before;
    this.put(page);
  }

  all() {
    return [...this.found.values()].sort((one, other) => this.key(one) - this.key(other));
  }
}

function jump() {
  const parts = [["context", "Context"], ["timeline", "Requests"], ["notices", "Notices"], ["transcript", "Transcript"]];
  return h("nav", { class: "jump", "aria-label": "Parts of this session" }, parts.map(([id, name]) =>
    h("button", { type: "button", class: "plain", onclick: () => {
      const title = document.getElementById(`${id}-title`);
      title.setAttribute("tabindex", "-1");
      title.focus();
      title.scrollIntoView();
    } }, name)));
}
