// The table of contexts: sorted, filtered, a maximum of rows, one stop for the keyboard (arrows move inside).
// Rows are kept and their cells changed in place. The order changes when it is asked for, not while numbers tick.

import { at, contextLink, count, h, moment, perPage, plural, say, state } from "../dom.js";

const MOST = 500;

const rate = ({ pages, clicks }) => (pages ? clicks / pages : -1);
const STATES = { "switched off": 0, off: 1, shadow: 2, live: 3 };
const COLUMNS = [
  { key: "name", words: "Context", text: true, value: (c) => c.name.toLowerCase(), cell: (c) => contextLink(c.name, { "data-key": c.name }) },
  { key: "state", words: "State", text: true, value: (c) => STATES[state(c).word], cell: stateCell },
  { key: "pages", words: "Pages", value: (c) => c.pages, cell: (c) => count(c.pages) },
  { key: "served", words: "Clicks a page, served", short: "Served", value: (c) => rate(c.served), cell: (c) => perPage(c.served) },
  { key: "holdout", words: "Clicks a page, holdout", short: "Holdout", value: (c) => rate(c.holdout), cell: (c) => perPage(c.holdout) },
  { key: "moved", words: "Places changed", value: (c) => c.moved, cell: (c) => (c.moved ? `${c.moved} of ${c.k}` : "–") },
  { key: "version", words: "Version", value: (c) => c.leader_version, cell: (c) => count(c.leader_version) },
  { key: "change", words: "Last change", text: true, value: (c) => -Date.parse(c.last_change ?? 0), cell: (c) => (c.last_change ? moment(c.last_change) : "–") },
];
const ONLY = {
  all: () => true,
  changed: (c) => c.moved > 0,
  stopped: (c) => c.killed || c.mode === "off",
  alarms: (c) => c.alarms > 0,
};

const table = { contexts: new Map(), sort: "pages", down: true, order: [], rows: new Map(), stop: null, drawn: "" };

function stateCell(c) {
  const { word, symbol, tone } = state(c);
  return h("span", { class: `mark ${tone}`, title: c.why }, h("span", { "aria-hidden": "true" }, symbol), h("span", { class: "word" }, ` ${word}`), c.alarms ? h("span", { class: "mark alarm", title: plural(c.alarms, "alarm") }, " ⚠", h("span", { class: "unseen" }, plural(c.alarms, "alarm"))) : null);
}

export function setContexts(contexts) {
  const before = table.contexts.size;
  table.contexts = new Map(contexts.map((context) => [context.name, context]));
  if (before !== contexts.length) arrange();
}

// Decide which contexts are shown, and in which order.
function arrange() {
  const wanted = at("filter").value.trim().toLowerCase();
  const column = COLUMNS.find(({ key }) => key === table.sort);
  const chosen = [...table.contexts.values()].filter((c) => c.name.toLowerCase().includes(wanted) && ONLY[at("only").value](c));
  const keyed = chosen.map((c) => ({ name: c.name, value: column.value(c) }));
  const sign = table.down ? -1 : 1;
  keyed.sort((a, b) => sign * (a.value < b.value ? -1 : a.value > b.value ? 1 : 0) || (a.name < b.name ? -1 : 1));
  table.order = keyed.map(({ name }) => name);
}

function rearrange() {
  table.stop = null; // the keyboard enters at the first row again
  arrange();
  drawTable();
}

export function drawTable() {
  drawHead();
  const { order, contexts } = table;
  const names = order.filter((name) => contexts.has(name)).slice(0, MOST);
  const everything = contexts.size;
  say(at("contexts-count"), order.length === everything ? count(everything) : `${count(order.length)} of ${count(everything)}`);
  say(at("contexts-more"), rest(order.length - names.length, everything));
  if (!names.includes(table.stop)) table.stop = names[0] ?? null;
  for (const name of names) drawRow(contexts.get(name));
  place(names);
}

function rest(hidden, everything) {
  if (hidden > 0) return `and ${plural(hidden, "more context")}: filter by name to see them`;
  if (!everything) return "No context yet. One appears with its first call of POST /v1/rank; saferank serve --demo brings simulated visitors.";
  return table.order.length ? "" : "No context is like that.";
}

// Put the rows into this order; what has the focus keeps it, because rows that are in place are not touched.
function place(names) {
  const body = at("contexts-body");
  const wanted = JSON.stringify(names);
  if (wanted === table.drawn) return;
  table.drawn = wanted;
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  body.replaceChildren(...names.map((name) => table.rows.get(name).row));
  for (const name of table.rows.keys()) if (!table.contexts.has(name)) table.rows.delete(name);
  if (focused?.isConnected) focused.focus({ preventScroll: true });
}

function drawRow(context) {
  let known = table.rows.get(context.name);
  if (!known) {
    known = { row: h("tr", {}), facts: [] };
    known.cells = COLUMNS.map(({ key, text }) => h(key === "name" ? "th" : "td", { scope: key === "name" ? "row" : null, class: `${key}${text ? "" : " number"}` }));
    known.row.append(...known.cells);
    table.rows.set(context.name, known);
  }
  COLUMNS.forEach(({ key, value, cell }, i) => {
    const facts = key === "state" ? JSON.stringify([value(context), context.alarms, context.why]) : key === "moved" ? `${context.moved} ${context.k}` : String(value(context));
    if (known.facts[i] === facts) return;
    known.facts[i] = facts;
    known.cells[i].replaceChildren(cell(context));
  });
  const link = known.cells[0].firstChild;
  const stop = context.name === table.stop ? "0" : "-1";
  if (link.getAttribute("tabindex") !== stop) link.setAttribute("tabindex", stop);
}

// --- the head ---

function drawHead() {
  const head = at("contexts-head");
  if (!head.children.length) head.append(...COLUMNS.map(headCell));
  COLUMNS.forEach(({ key }, i) => {
    const sorted = key === table.sort ? (table.down ? "descending" : "ascending") : null;
    const cell = head.children[i];
    if (sorted === null) cell.removeAttribute("aria-sort");
    else cell.setAttribute("aria-sort", sorted);
    say(cell.querySelector(".arrow"), sorted === null ? "" : table.down ? "▼" : "▲");
  });
}

function headCell({ key, words, short, text }) {
  const button = h("button", { type: "button", class: "sort", "data-key": `sort-${key}`, title: short ? words : null, "aria-label": short ? words : null }, text ? (short ?? words) : null, h("span", { class: "arrow", "aria-hidden": "true" }), text ? null : (short ?? words));
  button.addEventListener("click", () => {
    table.down = table.sort === key ? !table.down : !text;
    table.sort = key;
    rearrange();
  });
  return h("th", { scope: "col", class: `${key}${text ? "" : " number"}` }, button);
}

// --- keyboard ---

function moveInTable(event) {
  const links = [...at("contexts-body").querySelectorAll("a")];
  const here = links.indexOf(document.activeElement);
  const there = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: links.length - 1, PageDown: Math.min(here + 20, links.length - 1), PageUp: Math.max(here - 20, 0) }[event.key];
  if (there === undefined || here < 0 || !links[there]) return;
  event.preventDefault();
  links[here].tabIndex = -1;
  links[there].tabIndex = 0;
  table.stop = links[there].dataset.key;
  links[there].focus();
}

export function wireTable() {
  for (const name of ["input", "change"])
    for (const place of ["filter", "only"])
      at(place).addEventListener(name, rearrange);
  at("contexts-body").addEventListener("keydown", moveInTable);
}
