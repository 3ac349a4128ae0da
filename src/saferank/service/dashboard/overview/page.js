// The first screen: one sentence, then the numbers behind it.

import { alarmWords } from "../alarms.js";
import { at, badge, contextLink, count, h, moment, percent, perPage, plural, refill, say, signed, signedPercent } from "../dom.js";
import { drawFeedback } from "./feedback.js";
import { drawFunnel } from "./funnel.js";
import { drawLift } from "./lift.js";

const DAY = 86_400_000;
const SHOWN = 6;

export function drawOverview(view) {
  refill(at("hero-state"), [view.mode, view.killed_everywhere.on, view.policy], () => [badge({ mode: view.mode, killed: view.killed_everywhere.on }), ` ${view.policy}, all contexts`]);
  say(at("sentence"), view.sentence);
  refill(at("alarms"), [view.effect.guardrail?.stopped, recent(view), view.unknowable], () => banners(view));
  const totals = tiles(view);
  refill(at("totals"), totals, () => totals.map(tile));
  const width = Math.round(at("lift").clientWidth);
  refill(at("lift"), [view.days, view.effect, view.markers, width], () => drawLift(view, width));
  refill(at("funnel"), view.funnel, () => drawFunnel(view.funnel));
  refill(at("changes"), view.changes, () => drawChanges(view.changes));
  refill(at("feedback"), [view.feedback, view.alarms], () => drawFeedback(view));
}

// --- alarms ---

const recent = ({ alarms, now }) => alarms.filter((alarm) => Date.parse(alarm.at) > Date.parse(now) - DAY);

function banners(view) {
  const { guardrail } = view.effect;
  const kinds = Map.groupBy ? Map.groupBy(recent(view), ({ kind }) => kind) : new Map();
  return [
    ...view.unknowable.map((sentence) => h("div", { class: "banner warning" }, `${sentence[0].toUpperCase()}${sentence.slice(1)}.`)),
    guardrail?.stopped ? h("div", { class: "banner alarm" }, h("strong", {}, "■ Stopped by the guardrail"), guardrail.stopped_at ? [" at ", moment(guardrail.stopped_at)] : "", `: served pages lost more than ${percent(guardrail.drop, 0)} against the holdout. Production's own ranking is served until somebody switches it on again.`) : null,
    ...[...kinds].map(([kind, found]) =>
      h("div", { class: "banner alarm" }, h("strong", {}, `⚠ ${plural(found.length, "alarm")} in the last 24 hours. `), `${alarmWords(kind)}: `, found[0].context === null ? "everywhere" : contextLink(found[0].context), ", ", moment(found[0].at), ".")),
  ];
}

// --- tiles: name, value, what it means, tone ---

function tiles(view) {
  const { effect } = view;
  return [
    ["Pages closed", count(view.pages), "their windows have ended", ""],
    ["Chosen by the policy", view.served_share === null ? "–" : percent(view.served_share), view.traffic.share < 1 ? `may choose for ${percent(view.traffic.share)} of visitors` : "the others are production's own", ""],
    effectTile(effect),
    ["How much it explores now", view.differing_share === null ? "–" : percent(view.differing_share), view.differing_share === null ? "no page has been counted in the last 7 days" : "of its pages of the last 7 days differ from production's", ""],
  ];
}

export function effectTile(effect) {
  const name = "Clicks a page against the holdout";
  const interval = effect.clicks_relative ?? effect.clicks;
  const rates = `${perPage(effect.served)} against ${perPage(effect.holdout)}`;
  if (effect.why_not) return [name, "–", effect.holdout.pages ? `${rates}; withheld: the arms are out of balance` : effect.why_not.includes("holdout_share") ? "there is no holdout" : "nothing was counted yet", ""];
  if (!interval || interval.estimate === null) return [name, "–", `${rates}; too few pages`, ""];
  const words = effect.clicks_relative ? signedPercent : (x) => signed(x, 3);
  const range = interval.high === null ? `above ${words(interval.low)}` : `${words(interval.low)} to ${words(interval.high)}`;
  return [name, words(interval.estimate), `${range}, valid at every look`, tone(interval)];
}

export const tone = ({ low, high }) => (low > 0 ? "up" : high !== null && high < 0 ? "down" : "");

export const tile = ([name, value, more, look]) => h("div", {}, h("dt", {}, name), h("dd", { class: look || null }, look ? h("span", { "aria-hidden": "true" }, look === "up" ? "▲ " : "▼ ") : null, value), more ? h("dd", { class: "more" }, more) : null);

// --- changes ---

function drawChanges(changes) {
  if (!changes.length) return h("p", { class: "soft" }, "None yet. A pair is decided when its comparisons leave no reasonable doubt; that takes some dozens of clicks on one of the two.");
  const rows = changes.slice(0, SHOWN).map(({ context, change }) =>
    h("li", {}, h("div", { class: "entry-head" }, contextLink(context, { class: "strong", "data-key": `change-${context}-${change.version}` }), h("span", { class: "soft small" }, moment(change.at))), h("p", { class: "small" }, reason(change))));
  const more = changes.length - SHOWN;
  return [h("ol", { class: "news" }, rows), more > 0 ? h("p", { class: "soft small" }, `and ${count(more)} more lately`) : null];
}

function reason({ evidence, leader }) {
  if (!evidence.length) return `The leader is now ${leader.join(", ")}.`;
  const [{ better, worse, s, n }] = evidence;
  const others = evidence.length - 1;
  const bold = (name) => h("bdi", { class: "strong" }, name);
  return [bold(better), " is better than ", bold(worse), `: lead ${count(s)} in ${plural(n, "comparison")}`, others ? `, and ${plural(others, "other pair")}` : "", "."];
}
