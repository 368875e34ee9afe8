// Making elements, and making any text safe to read. Nothing here knows what is shown.

const SVG = "http://www.w3.org/2000/svg";

// Control signs, and those that turn the direction of a text or show nothing: seen, they cannot mislead.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

export function visible(text) {
  return String(text).replace(/\r\n/g, "\n").replace(HIDDEN, (sign) => {
    const code = sign.codePointAt(0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.setAttribute("class", value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : visible(value));
  }
  put(node, ...children);
  return node;
}

// Children are nodes, or texts, which are only ever text.
export function put(node, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

export function clear(node, ...children) {
  node.replaceChildren();
  put(node, ...children);
  return node;
}

const whole = new Intl.NumberFormat();
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function num(value) {
  return whole.format(value);
}

export function count(value, noun) {
  return `${num(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function percent(part, all) {
  return `${all > 0 ? Math.round((100 * part) / all) : 0}%`;
}

export function when(text) {
  const date = new Date(text);
  const shown = Number.isNaN(date.getTime()) ? text : moment.format(date);
  return h("time", { datetime: text }, shown);
}

export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

// Runs `work` soon, never twice at once, and at most once in `pause` milliseconds.
export function throttled(work, pause) {
  let timer = null, running = false, again = false, last = 0;
  async function run() {
    timer = null;
    running = true;
    again = false;
    try {
      await work();
    } finally {
      running = false;
      last = Date.now();
      if (again) ask();
    }
  }
  function ask() {
    if (running) again = true;
    else if (timer === null) timer = setTimeout(run, Math.max(0, last + pause - Date.now()));
  }
  ask.stop = () => clearTimeout(timer);
  return ask;
}
