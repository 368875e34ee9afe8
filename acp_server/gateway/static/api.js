// Asking the gateway: JSON, and the stream of events. The token is kept for this tab alone, and never in an address.

const KEY = "wholeturn.token";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// `#token=…`, as the command line prints it: taken out of the address at once.
export function takeToken() {
  const given = new URLSearchParams(location.hash.replace(/^#\/?/, "")).get("token");
  if (given) {
    keepToken(given);
    history.replaceState(null, "", `${location.pathname}#/`);
  }
  return sessionStorage.getItem(KEY);
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

export function dropToken() {
  sessionStorage.removeItem(KEY);
}

function headers(more) {
  return { Authorization: `Bearer ${sessionStorage.getItem(KEY)}`, ...more };
}

async function refusal(answer) {
  let message = answer.statusText || `The gateway answered with ${answer.status}.`;
  try {
    message = (await answer.json()).error.message;
  } catch {
    // it was no JSON: the status says enough
  }
  return new Refused(answer.status, message);
}

// The answer of a route. Throws Refused, or TypeError when nobody answers.
export async function get(path, query = {}, signal) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = given.length ? `?${new URLSearchParams(given)}` : "";
  const answer = await fetch(path + text, { headers: headers(), signal, cache: "no-store" });
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

export function session(id, part = "") {
  return `/api/sessions/${encodeURIComponent(id)}${part && `/${part}`}`;
}

const LONGEST_PAUSE = 15000;

// Follows the events until `signal` ends it; comes back behind the last one that was seen.
// told: an event. state: "live", "lost" or, when the token does not count, "refused".
export async function follow(query, { told, state, signal }) {
  let last = null, pause = 1000;
  while (!signal.aborted) {
    try {
      const answer = await fetch(`/api/events?${new URLSearchParams(query)}`, {
        headers: headers(last ? { "Last-Event-ID": last } : {}), signal, cache: "no-store",
      });
      if (!answer.ok) throw await refusal(answer);
      pause = 1000;
      state("live");
      for await (const frame of frames(answer.body)) {
        if (frame.id) last = frame.id;
        if (frame.data) told(JSON.parse(frame.data));
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status === 401) {
        state("refused");
        return;
      }
    }
    state("lost");
    await sleep(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const parts = held.split(/\r?\n\r?\n/);
    held = parts.pop();
    yield* parts.map(frame);
  }
}

function frame(text) {
  const found = { id: "", data: "" };
  for (const line of text.split(/\r?\n/)) {
    const at = line.indexOf(":");
    const name = line.slice(0, at), value = line.slice(at + 1).replace(/^ /, "");
    if (at > 0 && name === "id") found.id = value;
    else if (at > 0 && name === "data") found.data += (found.data && "\n") + value;
  }
  return found;
}

function sleep(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}
