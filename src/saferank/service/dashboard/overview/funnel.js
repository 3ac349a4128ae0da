// How far contexts have come: a bar for each step, its length the share of all contexts.

import { count, h, percent } from "../dom.js";

const STEPS = [
  ["contexts", "Contexts", "all that were ever asked for", "plain"],
  ["with_evidence", "With comparisons", "at least one pair was compared", "plain"],
  ["changed_by_clicks", "Changed by clicks", "the leader differs from production's page", "good"],
  ["stopped", "Stopped", "production's ranking, by a switch or the guardrail", "bad"],
  ["waiting", "Waiting for traffic", "production's ranking until there are clicks enough to learn from", "dim"],
  ["undecided_for_long", "No decision in sight", "at this traffic none within 90 days (an estimate)", "dim"],
];

export function drawFunnel(funnel) {
  if (!funnel.contexts) return h("p", { class: "soft" }, "No context yet.");
  return h("ul", { class: "funnel" }, STEPS.map(([name, words, meaning, look]) => step(words, meaning, look, funnel[name], funnel.contexts)));
}

function step(words, meaning, look, n, all) {
  const share = n / all;
  return h(
    "li",
    { class: look },
    h("span", { class: "step" }, words, h("span", { class: "soft small" }, meaning)),
    h("span", { class: "number" }, count(n), h("span", { class: "soft small" }, n === all ? "" : percent(share, share < 0.1 && share > 0 ? 1 : 0))),
    h("span", { class: "bar", "aria-hidden": "true" }, h("span", { "--share": `${100 * share}%` })),
  );
}
