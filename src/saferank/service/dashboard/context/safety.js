// What must not happen, counted; and what is being tried.

import { alarmWords } from "../alarms.js";
import { count, h, id, plural } from "../dom.js";

const raised = ({ alarms }) => Object.entries(alarms).filter(([, n]) => n > 0);

export function drawAlarms(view) {
  return raised(view).map(([name, n]) => h("div", { class: "banner alarm" }, h("strong", {}, `⚠ ${plural(n, "alarm")}. `), `${alarmWords(name)}.`));
}

const COUNTED = {
  illegal_page: "Pages that failed the check before serving (production's was shown instead)",
  contradiction: "Contradictions between decided pairs (they were dropped)",
  exchange_share: "Times that a caller chose by the order which pages it reported",
  unbalanced_arms: "Times that served pages and the holdout left the promised ratio (the effect is withheld)",
};

export function drawSafety({ alarms }) {
  const rows = Object.entries({ illegal_page: 0, contradiction: 0, ...alarms });
  return [h("ul", { class: "counters" }, rows.map(([name, n]) => counter(COUNTED[name] ?? alarmWords(name), n))), h("p", { class: "small soft" }, "Every page is checked before it is sent: the number of pairs that could be in the wrong order has a limit.")];
}

function counter(words, n) {
  return h("li", { class: n === 0 ? "fine" : "alarm" }, h("span", { class: "symbol", "aria-hidden": "true" }, n === 0 ? "✓" : "⚠"), h("span", {}, words), h("span", { class: "number" }, count(n)));
}

export function drawExploring({ challenger, exploration, mode, killed, killed_everywhere: everywhere }) {
  if (mode === "off" || killed.on || everywhere.on) return h("p", { class: "soft" }, "Nothing: production's own ranking is served.");
  const note = exploration ? h("details", { class: "small soft" }, h("summary", { "data-key": "exploration" }, "In the policy's own words"), `${exploration}.`) : null;
  if (!challenger) return [h("p", {}, "The order of the leader's own items. No item from below the page is being tried."), note];
  return [h("p", { class: "contest" }, h("span", { class: "chip up" }, id(challenger.item)), " is tried against ", h("span", { class: "chip" }, id(challenger.against)), " for the last place."), h("p", {}, score(challenger)), note];
}

function score({ s, n }) {
  if (n === 0) return "They have not been compared yet.";
  if (s === 0) return `They are level after ${plural(n, "comparison")}.`;
  return `The newcomer is ${s > 0 ? "ahead" : "behind"} by ${count(Math.abs(s))} in ${plural(n, "comparison")}; that is not decided yet.`;
}
