// The list of contexts: filtered, ordered, at most a page of them, one stop for the keyboard (arrows move inside).

import { at, count, h, id, plural, refill, say } from "./dom.js";

const MOST = 200;
const rates = new Map();

// Pages per second, smoothed over a few polls.
export function noteTraffic(contexts, now) {
  for (const { name, pages } of contexts) {
    const last = rates.get(name);
    if (last === undefined || pages < last.pages) rates.set(name, { pages, now, rate: null });
    else if (now - last.now > 500) {
      const rate = (1000 * (pages - last.pages)) / (now - last.now);
      rates.set(name, { pages, now, rate: last.rate === null ? rate : 0.6 * last.rate + 0.4 * rate });
    }
  }
}

export const rateOf = (name) => rates.get(name)?.rate ?? null;
export const speed = (rate) => (rate === null ? "…" : rate >= 10 ? rate.toFixed(0) : rate.toFixed(1));

export function state({ mode, killed, frozen }) {
  if (frozen) return { word: "frozen", symbol: "❄", tone: "alarm" };
  if (killed) return { word: "switched off", symbol: "■", tone: "alarm" };
  if (mode === "shadow") return { word: "shadow", symbol: "◐", tone: "info" };
  if (mode === "off") return { word: "off", symbol: "■", tone: "muted" };
  return { word: "live", symbol: "●", tone: "ok" };
}

export const badge = (facts) => {
  const { word, symbol, tone } = state(facts);
  return h("span", { class: `badge ${tone}` }, h("span", { "aria-hidden": "true" }, symbol), ` ${word}`);
};

const ORDERS = {
  traffic: (a, b) => b.pages - a.pages || (a.name < b.name ? -1 : 1),
  name: (a, b) => (a.name < b.name ? -1 : 1),
  trouble: (a, b) => trouble(b) - trouble(a) || b.pages - a.pages,
};
const trouble = (context) => 2 * context.frozen + context.killed;

export const href = (name) => `#context=${encodeURIComponent(name)}`;

export function chosen(contexts) {
  const wanted = at("filter").value.trim().toLowerCase();
  const found = contexts.filter(({ name }) => name.toLowerCase().includes(wanted));
  return found.sort(ORDERS[at("order").value]);
}

export function drawContexts(contexts, selected) {
  const found = chosen(contexts);
  say(at("contexts-count"), found.length === contexts.length ? count(contexts.length) : `${count(found.length)} of ${count(contexts.length)}`);
  const hidden = found.length - MOST;
  say(at("contexts-more"), hidden > 0 ? `and ${plural(hidden, "more context")}: filter by name to see them` : found.length ? "" : "No context has such a name.");
  const rows = found.slice(0, MOST);
  const stop = rows.some(({ name }) => name === selected) ? selected : rows[0]?.name;
  const facts = rows.map((c) => [c.name, c.mode, c.killed, c.frozen, c.pages, c.leader_version, speed(rateOf(c.name))]);
  refill(at("contexts"), [facts, selected], () => rows.map((context) => h("li", {}, row(context, selected, stop))));
}

function row(context, selected, stop) {
  const { word, symbol, tone } = state(context);
  return h(
    "a",
    {
      href: href(context.name),
      "data-key": context.name,
      tabindex: context.name === stop ? 0 : -1,
      "aria-current": context.name === selected ? "true" : null,
    },
    h("span", { class: `mark ${tone}`, title: word }, h("span", { "aria-hidden": "true" }, symbol), h("span", { class: "unseen" }, word)),
    id(context.name),
    h("span", { class: "facts soft" }, `${plural(context.pages, "page")} · ${speed(rateOf(context.name))}/s · leader ${context.leader_version}`),
  );
}

export function moveInList(event) {
  const links = [...at("contexts").querySelectorAll("a")];
  const here = links.indexOf(document.activeElement);
  const there = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: links.length - 1 }[event.key];
  if (there === undefined || here < 0 || !links[there]) return;
  event.preventDefault();
  links[there].focus();
}
