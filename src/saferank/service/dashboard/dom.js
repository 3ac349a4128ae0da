// Elements without markup: every text is text, so no id, however hostile, can become anything else.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
export const at = (id) => document.getElementById(id);

// An id of an item or a context: kept apart from the direction of the text around it, cut when long, whole in the title.
export const id = (name, more = {}) => h("bdi", { class: "id", title: name, ...more }, visible(name));

// Characters that would turn or hide text are shown as their numbers.
export const visible = (name) =>
  name.replace(/[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (c) => `<U+${c.codePointAt(0).toString(16).toUpperCase()}>`);

const shown = new WeakMap();

// Build the content of a place anew, but only when the facts changed; the focus stays on the element of the same key.
export function refill(place, facts, build) {
  const text = JSON.stringify(facts);
  if (shown.get(place) === text) return;
  shown.set(place, text);
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const scroll = place.querySelector("[data-scroll]")?.scrollLeft ?? 0;
  place.replaceChildren(...[build()].flat(Infinity).filter(Boolean));
  const scroller = place.querySelector("[data-scroll]");
  if (scroller) scroller.scrollLeft = scroll;
  if (focused !== undefined) place.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

export function show(element, visibly) {
  if (element.hidden === visibly) element.hidden = !visibly;
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const numbers = new Intl.NumberFormat("en");
export const count = (n) => numbers.format(n);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

export function moment(text) {
  const date = new Date(text);
  const today = date.toDateString() === new Date().toDateString();
  const shownAs = today ? date.toLocaleTimeString("en-GB") : date.toLocaleString("en-GB");
  return h("time", { datetime: text, title: date.toLocaleString("en-GB") }, shownAs);
}
