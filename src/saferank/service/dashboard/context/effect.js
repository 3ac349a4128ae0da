// Clicks of served pages beside the holdout. The interval comes from the service and holds at every look; without one
// there are counts, and no verdict.

import { count, h, percent, perPage, relative, signed, svg } from "../dom.js";

const NAMES = {
  explore: "Served, counted",
  holdout: "Holdout: production's page",
  off: "Switched off: production's page",
  shadow: "Shadow: production's page",
  repeat: "Repeated, not counted",
};

export function drawEffect({ arms }, effect) {
  const rows = Object.keys(NAMES).filter((arm) => arms[arm]?.pages > 0);
  if (!rows.length) return h("p", { class: "soft" }, "Pages are counted when their windows close; none has yet.");
  return [verdict(effect), ruler(effect?.why_not ? null : effect?.clicks_relative), guardrail(effect?.guardrail), counts(rows, arms)];
}

function verdict(effect) {
  if (!effect) return h("p", { class: "verdict" }, "The service gives no comparison of this context.");
  if (effect.why_not) return h("p", { class: "verdict" }, `No comparison: ${effect.why_not}.`);
  const ratio = effect.clicks_relative, interval = ratio ?? effect.clicks;
  if (!interval || interval.estimate === null) return h("p", { class: "verdict" }, "Too few pages to tell a difference.");
  const words = ratio ? relative : (x) => `${signed(x, 3)} clicks`;
  const range = `${words(interval.estimate)} clicks a page, ${interval.high === null ? `above ${words(interval.low)}` : `${words(interval.low)} to ${words(interval.high)}`}`;
  if (interval.low > 0) return h("p", { class: "verdict" }, h("strong", { class: "up" }, `▲ Better: ${range}`), certainty(effect));
  if (interval.high !== null && interval.high < 0) return h("p", { class: "verdict" }, h("strong", { class: "down" }, `▼ Worse: ${range}`), certainty(effect));
  return h("p", { class: "verdict" }, h("strong", {}, "No difference can be told yet: "), range, certainty(effect));
}

const certainty = ({ error }) => h("span", { class: "soft small" }, ` The interval misses the truth at any look with probability ${percent(error, 0)} at most.`);

export function ruler(interval, words = relative) {
  if (!interval || interval.estimate === null || interval.high === null) return null;
  const reach = Math.max(0.05, 1.15 * Math.abs(interval.low), 1.15 * Math.abs(interval.high));
  const x = (value) => `${Math.max(0, Math.min(100, 50 + (50 * value) / reach)).toFixed(2)}%`;
  const look = interval.low > 0 ? "up" : interval.high < 0 ? "down" : "level";
  return h("div", { class: "ruler", "aria-hidden": "true" },
    svg("svg", { class: `whisker ${look}`, width: "100%", height: 22 },
      svg("line", { class: "track", x1: 0, x2: "100%", y1: 11, y2: 11 }),
      svg("line", { class: "zero", x1: "50%", x2: "50%", y1: 1, y2: 21 }),
      svg("line", { class: "interval", x1: x(interval.low), x2: x(interval.high), y1: 11, y2: 11 }),
      svg("circle", { class: "point", cx: x(interval.estimate), cy: 11, r: 5 })),
    h("div", { class: "axis soft small" }, h("span", {}, words(-reach, 0)), h("span", {}, "as production"), h("span", {}, words(reach, 0))));
}

function guardrail(found) {
  if (!found) return null;
  if (found.stopped) return h("p", { class: "advice" }, `■ Stopped by the guardrail: served pages lost more than ${percent(found.drop, 0)}.`);
  const share = Math.max(0, Math.min(1, found.log_evidence / found.needed));
  return h("p", { class: "small soft" }, `Guardrail at a loss of ${percent(found.drop, 0)}: ${percent(share, 0)} of the evidence that would stop it.`);
}

function counts(rows, arms) {
  return h("table", { class: "figures" },
    h("caption", { class: "unseen" }, "Closed pages by arm"),
    h("thead", {}, h("tr", {}, ["Closed pages", "Pages", "With a click", "Clicks a page"].map((name, i) => h("th", { scope: "col", class: i ? "number" : null }, name)))),
    h("tbody", {}, rows.map((arm) => h("tr", { class: arm }, h("th", { scope: "row" }, NAMES[arm]), h("td", { class: "number" }, count(arms[arm].pages)), h("td", { class: "number" }, percent(arms[arm].clicked_pages / arms[arm].pages)), h("td", { class: "number" }, perPage(arms[arm]))))));
}
