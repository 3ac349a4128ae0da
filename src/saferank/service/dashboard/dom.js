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

// Build the content of a place again, but only when the facts changed; the focus stays on the element of the same key.
export function refill(place, facts, build) {
  const text = JSON.stringify(facts);
  if (shown.get(place) === text) return;
  shown.set(place, text);
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const before = place.querySelector("[data-scroll]");
  const [left, top] = [before?.scrollLeft ?? 0, before?.scrollTop ?? 0];
  const open = new Set([...place.querySelectorAll("details[open] > summary")].map((summary) => summary.dataset.key));
  place.replaceChildren(...[build()].flat(Infinity).filter(Boolean));
  const scroller = place.querySelector("[data-scroll]");
  if (scroller) [scroller.scrollLeft, scroller.scrollTop] = [left, top];
  for (const summary of place.querySelectorAll("summary")) summary.parentElement.open = open.has(summary.dataset.key);
  if (focused !== undefined) place.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

export function show(element, visibly) {
  if (element.hidden === visibly) element.hidden = !visibly;
}

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const DAY = 86_400_000;

const numbers = new Intl.NumberFormat("en");
export const count = (n) => numbers.format(n);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
// Comparisons differ in their odds, so a pair may be decided against its count.
export const lead = ({ s, n }) => (s > 0 ? `: lead ${count(s)} in ${plural(n, "comparison")}` : `, after ${plural(n, "comparison")}`);
// A number and its sign stay on one line.
export const bound = (text) => text.replaceAll(" %", "\u00a0%");
export const percent = (share, digits = 1) => bound(`${(100 * share).toFixed(digits)} %`);
// As the sentence of the service writes it: 2 %, 1.4 %.
export const shortPercent = (share) => percent(share).replace(".0\u00a0", "\u00a0");
export const signed = (x, digits = 1) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(digits)}`;
export const signedPercent = (share, digits = 1) => bound(`${signed(100 * share, digits)} %`);
// A relative difference; beyond a factor of two digits say nothing.
export const relative = (x, digits = 1) => (x > 1 ? "more than twice" : x < -0.5 ? "less than half" : signedPercent(x, digits));
export const perPage = ({ pages, clicks }) => (pages ? (clicks / pages).toFixed(3) : "–");

export const href = (name) => `#context=${encodeURIComponent(name)}`;
export const contextLink = (name, more = {}) => h("a", { href: href(name), ...more }, id(name));

export function state({ mode, killed }) {
  if (killed) return { word: "switched off", symbol: "■", tone: "alarm" };
  if (mode === "shadow") return { word: "shadow", symbol: "◐", tone: "info" };
  if (mode === "off") return { word: "off", symbol: "■", tone: "muted" };
  return { word: "live", symbol: "●", tone: "ok" };
}

export const badge = (facts) => {
  const { word, symbol, tone } = state(facts);
  return h("span", { class: `badge ${tone}` }, h("span", { "aria-hidden": "true" }, symbol), ` ${word}`);
};

// The time of today, the day of this year, or the date.
export function moment(text) {
  const date = new Date(text), now = new Date();
  const day = date.getFullYear() === now.getFullYear() ? { day: "numeric", month: "short" } : { day: "numeric", month: "short", year: "numeric" };
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const shownAs = date.toDateString() === now.toDateString() ? date.toLocaleTimeString("en-GB") : `${date.toLocaleDateString("en-GB", day)}, ${time}`;
  return h("time", { datetime: text, title: date.toLocaleString("en-GB") }, shownAs);
}
