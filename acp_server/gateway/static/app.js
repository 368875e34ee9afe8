// The page: what its address shows, the token, and what is said of the stream.

import { Refused, dropToken, follow, keepToken, takeToken } from "./api.js";
import { clear, h } from "./dom.js";
import { List } from "./list.js";
import { SessionView } from "./session.js";

const main = document.getElementById("main");
const feedNode = document.getElementById("feed");
const newsNode = document.getElementById("news");
const STATES = { live: "live", lost: "not connected, trying again", refused: "the token does not count" };

let list = null, view = null, following = null;

function feed(state) {
  if (state === "refused") return askForToken("The token is missing or wrong.");
  feedNode.dataset.state = state;
  clear(feedNode, STATES[state]);
}

function news(text) {
  clear(newsNode, text);
}

function failed(error) {
  if (error.name === "AbortError") return;
  if (error instanceof Refused && error.status === 401) return askForToken("The token is missing or wrong.");
  // 400: an id that no session can have.
  if (error instanceof Refused && [400, 404].includes(error.status) && view) {
    leave();
    clear(main, h("p", { class: "empty" }, "There is no such session. It may have been deleted."));
    return;
  }
  feedNode.dataset.state = "lost";
  clear(feedNode, error instanceof Refused ? error.message : "The gateway does not answer.");
}

function leave() {
  view?.close();
  view = null;
}

async function show() {
  const found = location.hash.match(/^#\/session\/(.+)$/);
  let id = null;
  try {
    id = found && decodeURIComponent(found[1]);
  } catch {
    // no address of ours
  }
  const before = view?.id;
  leave();
  document.body.dataset.view = id ? "session" : "list";
  list.mark(id);
  if (!id) {
    // The link that led back went with its page: go on where that was chosen.
    if (document.activeElement === document.body || main.contains(document.activeElement)) list.focus(before);
    document.title = "Wholeturn";
    clear(main, h("p", { class: "empty" }, "Choose a session to see what its model gets."));
    return;
  }
  const mine = view = new SessionView(id, { news, feed, failed, changed: list.refresh });
  clear(main, mine.node);
  await mine.open();
  if (view === mine && document.activeElement === document.body) mine.title.focus({ preventScroll: true });
}

function askForToken(why) {
  leave();
  following?.abort();
  dropToken();
  document.body.dataset.view = "session";
  clear(document.getElementById("list"));
  clear(feedNode);
  const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
  const form = h("form", null, input, h("button", null, "Open"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(input.value.trim());
    start();
  });
  clear(main, h("section", { class: "card key", "aria-labelledby": "key-title" },
    h("h1", { id: "key-title" }, "Token"), why && h("p", { role: "alert" }, why),
    h("p", { class: "dim" }, h("label", { for: "token" }, "The gateway printed an address with the token when it started; " +
      "it also stands in its file gateway.token.")), form));
  input.focus();
}

async function start() {
  following = new AbortController();
  list = new List(document.getElementById("list"), failed);
  window.onhashchange = () => takeToken() && show();
  await Promise.all([list.load(false), show()]);
  if (following.signal.aborted) return;
  const told = () => list.refresh();
  const state = (how) => (how === "live" ? list.refresh() : null, view || feed(how));
  follow({ types: "title_changed,history_trimmed,user_message" }, { told, state, signal: following.signal });
}

// Nothing tells that a session was deleted; who comes back to the page sees it as it is.
document.addEventListener("visibilitychange", () => {
  if (document.hidden || !list) return;
  list.refresh();
  view?.refreshAll();
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

if (takeToken()) start();
else askForToken("");
