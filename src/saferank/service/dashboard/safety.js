// What must not happen, counted; and what is being tried.

import { count, h, id, plural } from "./dom.js";

// name -> what it means; anything but zero is an alarm
const ALARMS = {
  illegal_page: "Pages that failed the check before serving (production's was shown instead)",
  contradiction: "Contradictions between decided pairs",
};

// The same for the whole service, from its metrics; worth knowing, no alarm unless it says so.
const EVERYWHERE = {
  saferank_feedback_late_total: ["Reports of clicks that came after their page's window", "info"],
  saferank_feedback_duplicate_total: ["Reports that held nothing new", "info"],
  saferank_pages_recovered_total: ["Pages restored from their tokens after a crash", "info"],
  saferank_commit_failures_total: ["Writes that failed and were tried again", "alarm"],
};

// What of the metrics is shown.
export const counted = (metrics) => Object.keys(EVERYWHERE).map((name) => metrics[name]);

const wording = (name) => ALARMS[name] ?? name.replaceAll("_", " ").replace(/^./, (c) => c.toUpperCase());

export const raised = ({ alarms }) => Object.entries(alarms).filter(([, n]) => n > 0);

export function drawAlarms(view) {
  const frozen = view.frozen
    ? h("div", { class: "banner alarm" }, h("strong", {}, "❄ Frozen on production's ranking. "), view.frozen, " Go back to an earlier leader to go on.")
    : null;
  const counted = raised(view).map(([name, n]) =>
    h("div", { class: "banner alarm" }, h("strong", {}, `⚠ ${wording(name)}: `), count(n)),
  );
  return [frozen, ...counted];
}

export function drawSafety({ alarms }, metrics) {
  const here = Object.entries({ illegal_page: 0, contradiction: 0, ...alarms }).map(([name, n]) => counter(wording(name), n, "alarm"));
  const names = Object.keys(EVERYWHERE).filter((name) => name in metrics);
  const everywhere = names.map((name) => counter(EVERYWHERE[name][0], metrics[name], EVERYWHERE[name][1]));
  return [h("ul", { class: "counters" }, here), names.length ? [h("h4", {}, "In all contexts"), h("ul", { class: "counters" }, everywhere)] : null];
}

function counter(words, n, tone) {
  const symbol = n === 0 ? "✓" : tone === "alarm" ? "⚠" : "•";
  return h("li", { class: n === 0 ? "fine" : tone }, h("span", { class: "symbol", "aria-hidden": "true" }, symbol), h("span", {}, words), h("span", { class: "number" }, count(n)));
}

export function drawExploring({ challenger, exploration, mode }) {
  if (mode === "off") return h("p", { class: "soft" }, "Nothing: production's own ranking is served.");
  const text = exploration ? h("p", { class: "small soft" }, `Why: ${exploration}.`) : null;
  if (!challenger) return text ?? h("p", { class: "soft" }, "No unranked item contends for the last place.");
  const { item, against, s, n, index } = challenger;
  const score = n === 0 ? "they have not met yet" : s === 0 ? `level after ${plural(n, "comparison")}` : `${s > 0 ? "ahead" : "behind"} by ${count(Math.abs(s))} in ${plural(n, "comparison")}`;
  return [
    h("p", { class: "contest" }, h("span", { class: "chip up" }, id(item)), " contends with ", h("span", { class: "chip" }, id(against)), " for the last place"),
    h("p", { class: "small soft" }, score, typeof index === "number" ? `; optimistic chance to win ${index.toFixed(2)}` : ""),
    text,
  ];
}
