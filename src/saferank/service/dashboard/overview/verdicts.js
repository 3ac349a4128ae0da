// Three questions, each with a word, a number and a bar: is it safe, is it better, was it worth it?

import { ruler } from "../context/effect.js";
import { DAY, count, h, percent, perPage, plural, relative, shortPercent, signed } from "../dom.js";

const SHORTEST = 0.25; // days after which clicks a day are told

export const verdicts = (view) => [safe(view), better(view.effect), worthIt(view)];

export const verdict = ({ name, word, tone, number, more, bar }) =>
  h("div", { class: `verdict-tile ${tone}` },
    h("dt", {}, name, h("span", { class: "word" }, word)),
    h("dd", {}, number),
    h("dd", { class: "bar-place" }, !bar ? null : bar.interval ? ruler(bar.interval, bar.words) : h("span", { class: "gauge", "aria-hidden": "true" }, h("span", { "--share": `${100 * bar.share}%` }))),
    more.map((line) => h("dd", { class: "more" }, line)));

function safe({ effect: { guardrail }, safety: { checked, over_limit: over, worst_page: worst } }) {
  const word = guardrail?.stopped ? "Stopped" : over ? "Look at the alarms" : !checked ? "Nothing shown yet" : guardrail ? "Holds" : "Checked, unguarded";
  const evidence = guardrail ? Math.max(0, Math.min(1, guardrail.log_evidence / guardrail.needed)) : 0;
  return {
    name: "Safe", word, tone: guardrail?.stopped || over ? "down" : checked && guardrail ? "up" : "",
    number: `${count(checked)} pages checked`, bar: worst === null ? null : { share: worst },
    more: [
      `${count(over)} over the limit${over ? ": production's page was shown instead" : ""}; ${worst === null ? "no page was shown yet" : `the worst page may have used ${percent(worst, 0)} of the limit`}`,
      !guardrail ? "the guardrail is off" : guardrail.stopped ? `served pages lost more than ${percent(guardrail.drop, 0)}` : `guardrail armed at a loss of ${percent(guardrail.drop, 0)}: ${percent(evidence, 0)} of the evidence that would stop it`,
    ],
  };
}

const toneOf = ({ low, high }) => (low > 0 ? "up" : high !== null && high < 0 ? "down" : "");
const WORDS = { up: "Yes", down: "No: worse", "": "Not known yet" };

function better(effect) {
  const rates = `${perPage(effect.served)} clicks a page against ${perPage(effect.holdout)} in the holdout (${plural(effect.holdout.pages, "page")}; its share of all is ${count(Math.round(effect.promised))})`;
  const interval = effect.clicks_relative ?? effect.clicks;
  if (effect.why_not) return { name: "Better", word: "Cannot be said", tone: "", number: "–", more: [effect.holdout.pages ? `${rates}; withheld: the arms are out of balance` : effect.why_not.includes("holdout_share") ? "there is no holdout" : "nothing was counted yet"] };
  if (!interval || interval.estimate === null) return { name: "Better", word: "Not known yet", tone: "", number: "–", more: [`${rates}; too few pages`] };
  const tone = toneOf(interval), words = effect.clicks_relative ? relative : (x) => signed(x, 3);
  return {
    name: "Better", word: WORDS[tone], tone, number: words(interval.estimate), bar: { interval, words },
    more: [`${interval.high === null ? `above ${words(interval.low)}` : `${words(interval.low)} to ${words(interval.high)}`}, valid at every look`, rates],
  };
}

function worthIt({ effect, bins, now, exploring: { proven, learning } }) {
  const exploring = proven === null ? "the policy chose no page in the last 7 days" : `in 7 days ${shortPercent(proven)} of its pages changed because proven, ${shortPercent(learning)} to learn`;
  const found = effect.why_not ? null : effect.clicks;
  if (!found || found.estimate === null) return { name: "Worth it", word: "Not known yet", tone: "", number: "–", more: [exploring] };
  const { pages } = effect.served, words = (x) => `${x < 0 ? "−" : "+"}${count(Math.abs(Math.round(x)))}`;
  const interval = { low: found.low * pages, estimate: found.estimate * pages, high: found.high === null ? null : found.high * pages };
  const days = bins.length ? (Date.parse(now) - Date.parse(bins[0].begin)) / DAY : 0;
  const tone = toneOf(interval), daily = days > SHORTEST ? `; about ${words(interval.estimate / days)} a day` : "";
  return {
    name: "Worth it", word: { up: "Yes", down: "No", "": "Not known yet" }[tone], tone,
    number: `${words(interval.estimate)} clicks so far`, bar: { interval, words },
    more: [`${interval.high === null ? `above ${words(interval.low)}` : `${words(interval.low)} to ${words(interval.high)}`}, valid at every look${daily}`, exploring],
  };
}
