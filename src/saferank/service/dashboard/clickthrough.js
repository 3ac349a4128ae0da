// Click-through of served pages against the holdout, with 95 % confidence intervals.

import { count, h, percent, plural, svg } from "./dom.js";

const Z = 1.959964;
const NAMES = {
  explore: "Served by saferank",
  holdout: "Holdout: production's page",
  off: "Switched off: production's page",
  shadow: "Shadow: production's page",
  frozen: "Frozen: production's page",
  repeat: "Repeated, not counted",
};

// Wilson's interval for a share.
export function wilson(hits, n) {
  if (n === 0) return { share: 0, low: 0, high: 1 };
  const p = hits / n;
  const middle = (p + (Z * Z) / (2 * n)) / (1 + (Z * Z) / n);
  const half = (Z / (1 + (Z * Z) / n)) * Math.sqrt((p * (1 - p)) / n + (Z * Z) / (4 * n * n));
  return { share: p, low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

// Newcombe's interval for the difference of two shares.
export function difference(a, b) {
  const gain = a.share - b.share;
  return {
    gain,
    low: gain - Math.hypot(a.share - a.low, b.high - b.share),
    high: gain + Math.hypot(a.high - a.share, b.share - b.low),
  };
}

export function drawClicks({ arms }) {
  const rows = Object.keys(NAMES)
    .filter((arm) => arms[arm]?.pages > 0)
    .map((arm) => ({ arm, ...arms[arm], ...wilson(arms[arm].clicked_pages, arms[arm].pages) }));
  if (!rows.length) return h("p", { class: "soft" }, "Pages are counted when their windows close; none has yet.");
  const top = scale(Math.max(...rows.map((row) => row.high)));
  return [h("p", { class: "verdict" }, verdict(rows)), h("ul", { class: "arms" }, rows.map((row) => arm(row, top))), axis(top)];
}

function scale(highest) {
  return [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1].find((step) => step >= highest) ?? 1;
}

function verdict(rows) {
  const [served, holdout] = ["explore", "holdout"].map((name) => rows.find((row) => row.arm === name));
  if (!served || !holdout) return "Without a holdout there is nothing to compare with.";
  const { gain, low, high } = difference(served, holdout);
  const points = (x) => `${x > 0 ? "+" : "−"}${Math.abs(100 * x).toFixed(1)}`;
  const range = `${points(gain)} points against the holdout (${points(low)} to ${points(high)})`;
  if (low > 0) return h("strong", { class: "up" }, `▲ ${range}`);
  if (high < 0) return h("strong", { class: "down" }, `▼ ${range}`);
  return `No difference can be told yet: ${range}.`;
}

function arm(row, top) {
  const x = (share) => `${(100 * share) / top}%`;
  return h(
    "li",
    { class: row.arm },
    h("div", { class: "arm-name" }, h("span", {}, NAMES[row.arm]), h("span", { class: "number" }, percent(row.share))),
    svg(
      "svg",
      { class: "whisker", width: "100%", height: 16, "aria-hidden": "true" },
      svg("line", { class: "track", x1: 0, x2: "100%", y1: 8, y2: 8 }),
      svg("line", { class: "interval", x1: x(row.low), x2: x(row.high), y1: 8, y2: 8 }),
      svg("circle", { class: "point", cx: x(row.share), cy: 8, r: 5 }),
    ),
    h(
      "div",
      { class: "soft small" },
      `95 % between ${percent(row.low)} and ${percent(row.high)}; ${plural(row.pages, "page")}, ${plural(row.clicks, "click")}`,
    ),
  );
}

function axis(top) {
  return h("div", { class: "axis soft small", "aria-hidden": "true" }, h("span", {}, "0 %"), h("span", {}, percent(top / 2, 0)), h("span", {}, percent(top, 0)));
}
