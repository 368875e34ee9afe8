// The list of sessions: newest first, searched and in pages.

import { get } from "./api.js";
import { badge, clear, count, h, num, put, throttled, when } from "./dom.js";

const PAGE = 30;
const NONE = "There is no session yet. The first prompt makes one: in your editor, or by `wholeturn run`.";

export class List {
  constructor(node, failed) {
    this.failed = failed;
    this.sessions = [];
    this.cursor = null;
    this.current = null;
    this.query = "";
    this.items = h("ul", { class: "sessions" });
    this.note = h("p", { class: "dim small", role: "status" });
    this.more = h("button", { type: "button", class: "more", onclick: () => this.load(true) }, "More sessions");
    const input = h("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", maxlength: "200" });
    const search = throttled(() => this.search(input.value.trim()), 300);
    input.addEventListener("input", search);
    this.refresh = throttled(() => this.load(false), 1000);
    put(clear(node), h("h2", { class: "unseen" }, "Sessions"),
      h("div", { class: "search", role: "search" }, h("label", { for: "search" }, "Search titles and folders"), input),
      this.note, this.items, this.more);
  }

  async search(query) {
    if (query === this.query) return;
    this.query = query;
    await this.load(false);
  }

  // onward: the next page; else from the beginning, as many as are shown.
  async load(onward) {
    const query = this.query;
    const limit = onward ? PAGE : Math.min(Math.max(this.sessions.length, PAGE), 200);
    try {
      const page = await get("/api/sessions", { q: query, limit, cursor: onward ? this.cursor : null });
      if (query !== this.query) return;
      this.sessions = onward ? [...this.sessions, ...page.sessions] : page.sessions;
      this.cursor = page.next_cursor;
      this.draw();
    } catch (error) {
      this.failed(error);
    }
  }

  mark(id) {
    this.current = id;
    for (const link of this.items.querySelectorAll("a")) {
      if (link.dataset.id === id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  focus(id) {
    [...this.items.querySelectorAll("a")].find((link) => link.dataset.id === id)?.focus();
  }

  draw() {
    const focused = this.items.contains(document.activeElement) && document.activeElement.dataset.id;
    clear(this.items, this.sessions.map(item));
    this.mark(this.current);
    if (focused) this.focus(focused);
    this.more.hidden = !this.cursor;
    const found = this.query ? `${count(this.sessions.length, "session")} found${this.cursor ? " so far" : ""}` : "";
    clear(this.note, this.sessions.length || this.cursor ? found : this.query ? "Nothing fits." : NONE);
  }
}

function item(session) {
  const link = h("a", { href: `#/session/${encodeURIComponent(session.session_id)}` },
    h("span", { class: "name", dir: "auto" }, session.title || "Without a title"),
    h("span", { class: "where dim small" }, session.cwd),
    h("span", { class: "dim small" }, when(session.updated_at), " ",
      session.running && badge("running", "running"),
      session.dropped_turns > 0 && badge(`${num(session.dropped_turns)} dropped`)));
  link.dataset.id = session.session_id;
  return h("li", null, link);
}
