// The picture of the pairs: a cell for every two items, the upper one of the leader in the row, the lower in the column.
// Colour says for whom the evidence speaks, its strength how clearly, the symbol says the same without colour.

import { count, h, id, plural, visible } from "../dom.js";

const MOST = 40;

const KINDS = {
  sure: { symbol: "▲", words: "decided: the item of the row is better" },
  for: { symbol: "+", words: "the row is ahead, undecided" },
  level: { symbol: "=", words: "level so far" },
  against: { symbol: "−", words: "the column is ahead, undecided" },
  wrong: { symbol: "▼", words: "decided: the item of the column is better" },
  unmet: { symbol: "·", words: "has not been compared yet" },
};

const key = (a, b) => JSON.stringify([a, b]);

function indexed(pairs) {
  const table = new Map();
  for (const { better, worse, s, n, decided } of pairs) {
    table.set(key(better, worse), { s, n, decided });
    table.set(key(worse, better), { s: -s, n, decided: decided ? "other" : false });
  }
  return table;
}

// The leader first, then the challenger, then the items compared most; those that are gone are left out.
function cast({ leader, pairs, challenger, base_ranking: base, candidates }) {
  const here = new Set([...base, ...candidates]);
  const met = new Map();
  for (const { better, worse, n } of pairs) for (const item of [better, worse]) met.set(item, (met.get(item) ?? 0) + n);
  const others = [...met.keys()].filter((item) => here.has(item) && !leader.includes(item)).sort((a, b) => met.get(b) - met.get(a));
  const first = challenger && !leader.includes(challenger.item) ? [challenger.item] : [];
  return [...new Set([...leader, ...first, ...others])];
}

function judged(facts) {
  if (!facts || (facts.n === 0 && !facts.decided)) return "unmet";
  if (facts.decided === "other") return "wrong";
  if (facts.decided) return "sure";
  return facts.s > 0 ? "for" : facts.s < 0 ? "against" : "level";
}

// |s|/n says how one-sided, n how much there is; both together fill the colour.
function strength({ s, n }) {
  const onesided = Math.abs(s) / Math.max(1, n);
  return Math.round(8 + 62 * Math.min(1, 1.6 * onesided) * Math.min(1, Math.log2(1 + n) / 7));
}

export function tally({ pairs, leader }) {
  const table = indexed(pairs);
  const decided = pairs.filter((pair) => pair.decided).length;
  const compared = pairs.filter((pair) => pair.n > 0 || pair.decided).length;
  const neighbours = leader.slice(1).map((item, place) => judged(table.get(key(leader[place], item))));
  return { decided, undecided: compared - decided, sure: neighbours.filter((kind) => kind === "sure").length, neighbours: neighbours.length };
}

export function drawMatrix(view) {
  const everyone = cast(view);
  const items = everyone.slice(0, MOST);
  const table = indexed(view.pairs);
  const { decided, undecided, sure, neighbours } = tally(view);
  const note = h("output", { class: "note", for: "matrix" }, HINT);
  return [
    h(
      "p",
      { class: "small soft" },
      `${plural(decided, "pair")} decided, ${count(undecided)} compared and undecided. Of the ${plural(neighbours, "pair")} of neighbours in the leader ${count(sure)} ${sure === 1 ? "is" : "are"} decided. `,
      items.length < everyone.length ? `Shown: the first ${items.length} of ${count(everyone.length)} items.` : "",
    ),
    legend(),
    h("div", { class: "matrix-frame", "data-scroll": "", role: "region", "aria-label": "Pairs of items" }, grid(items, view, table, note)),
    note,
  ];
}

const HINT = "Point at a cell, or go to the picture with Tab and move with the arrow keys, to read its numbers.";

function legend() {
  const entries = Object.entries(KINDS).map(([kind, { symbol, words }]) =>
    h("li", {}, h("span", { class: `cell ${kind}`, "aria-hidden": "true", "--strength": "45%" }, symbol), ` ${words}`),
  );
  return h("ul", { class: "legend small" }, entries);
}

function grid(items, view, table, note) {
  const k = view.leader.length;
  const head = h(
    "tr",
    {},
    h("th", { scope: "col", class: "corner" }, h("span", { class: "unseen" }, "Item")),
    items.slice(1).map((item, i) => h("th", { scope: "col", title: item, class: i + 1 === k ? "below" : null }, i + 2, h("span", { class: "unseen" }, ` ${visible(item)}`))),
  );
  const rows = items.slice(0, -1).map((item, row) =>
    h(
      "tr",
      { class: row === k ? "below" : null },
      h("th", { scope: "row" }, h("span", { class: "place" }, row + 1), id(item)),
      items.slice(1).map((other, i) => (i < row ? h("td", { class: "blank" }) : cell(item, other, row, i + 1, table.get(key(item, other)), k))),
    ),
  );
  const last = items.length > 1 ? h("tr", { class: items.length - 1 === k ? "below" : null }, h("th", { scope: "row" }, h("span", { class: "place" }, items.length), id(items.at(-1)))) : null;
  const whole = h("table", { id: "matrix", class: "matrix" }, h("caption", { class: "unseen" }, "Evidence for every pair of items"), h("thead", {}, head), h("tbody", {}, rows, last));
  const tell = (event) => {
    const said = event.target.closest?.("[data-said]")?.dataset.said;
    if (said) note.textContent = said;
  };
  whole.addEventListener("focusin", tell);
  whole.addEventListener("mouseover", tell);
  whole.addEventListener("mouseleave", () => (note.textContent = HINT));
  whole.addEventListener("keydown", moveInMatrix);
  return whole;
}

function cell(item, other, row, column, facts, k) {
  const kind = judged(facts);
  const said = sentence(item, other, kind, facts);
  return h(
    "td",
    { class: column === k ? "below" : null },
    h(
      "span",
      {
        class: `cell ${kind}`,
        "data-said": said,
        "data-key": `${row},${column}`,
        tabindex: row === 0 && column === 1 ? 0 : -1,
        role: "img",
        "aria-label": said,
        title: said,
        "--strength": facts ? `${strength(facts)}%` : null,
      },
      KINDS[kind].symbol,
    ),
  );
}

function sentence(item, other, kind, facts) {
  const [a, b] = [visible(item), visible(other)];
  if (kind === "unmet") return `${a} and ${b} have not been compared yet.`;
  const numbers = `lead ${count(Math.abs(facts.s))} in ${plural(facts.n, "comparison")}`;
  if (kind === "sure") return `${a} is better than ${b}, decided: ${numbers}.`;
  if (kind === "wrong") return `${b} is better than ${a}, decided: ${numbers}.`;
  if (kind === "level") return `${a} and ${b} are level after ${plural(facts.n, "comparison")}.`;
  return `${kind === "for" ? a : b} is ahead of ${kind === "for" ? b : a}, undecided: ${numbers}.`;
}

function moveInMatrix(event) {
  const here = event.target.dataset?.key?.split(",").map(Number);
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!here || !step) return;
  event.preventDefault();
  const next = event.currentTarget.querySelector(`[data-key="${here[0] + step[0]},${here[1] + step[1]}"]`);
  if (!next) return;
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
