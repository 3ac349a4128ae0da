// The first screen: one sentence, then the numbers behind it.

import { alarmWords } from "../alarms.js";
import { DAY, at, badge, bound, contextLink, count, h, id, lead, moment, percent, plural, refill, say } from "../dom.js";
import { drawFeedback } from "./feedback.js";
import { drawFunnel } from "./funnel.js";
import { drawLift } from "./lift.js";
import { verdict, verdicts } from "./verdicts.js";

const SHOWN = 6;

export function drawOverview(view) {
  refill(at("hero-state"), [view.mode, view.killed_everywhere.on, view.policy, view.traffic.share], () => [badge({ mode: view.mode, killed: view.killed_everywhere.on }), ` ${view.policy}, all contexts, for ${percent(view.traffic.share, 0)} of visitors`]);
  say(at("sentence"), bound(view.sentence));
  refill(at("alarms"), [view.effect.guardrail?.stopped, recent(view), view.unknowable, view.simulated], () => banners(view));
  const found = verdicts(view);
  refill(at("totals"), found, () => found.map(verdict));
  const width = Math.round(at("lift").clientWidth);
  refill(at("lift"), [view.bins, view.effect, view.markers, width], () => drawLift(view, width));
  refill(at("servers"), view.servers, () => drawServers(view.servers));
  refill(at("funnel"), view.funnel, () => drawFunnel(view.funnel));
  refill(at("changes"), [view.changes, view.changes.length ? null : steps(view)], () => drawChanges(view));
  refill(at("feedback"), [view.feedback, view.alarms], () => drawFeedback(view));
}

// --- alarms ---

const recent = ({ alarms, now }) => alarms.filter((alarm) => Date.parse(alarm.at) > Date.parse(now) - DAY);

function banners(view) {
  const { guardrail } = view.effect;
  // The guardrail's own banner says more than its alarm.
  const found = recent(view).filter(({ kind, context }) => !(guardrail?.stopped && kind === "guardrail" && context === null));
  return [
    view.simulated ? h("div", { class: "banner info" }, view.simulated) : null,
    ...view.unknowable.map((sentence) => h("div", { class: "banner warning" }, `${sentence[0].toUpperCase()}${sentence.slice(1)}.`)),
    guardrail?.stopped ? h("div", { class: "banner alarm" }, h("strong", {}, "■ Stopped by the guardrail"), guardrail.stopped_at ? [" at ", moment(guardrail.stopped_at)] : "", `: served pages lost more than ${percent(guardrail.drop, 0)} against the holdout. Production's own ranking is served until an operator switches it on again.`) : null,
    found.length ? h("div", { class: "banner alarm" }, h("strong", {}, `⚠ ${plural(found.length, "alarm")} in the last 24 hours.`), h("ul", {}, byKind(found).map(alarmLine))) : null,
  ];
}

function byKind(alarms) {
  const kinds = new Map();
  for (const alarm of alarms) kinds.set(alarm.kind, [...(kinds.get(alarm.kind) ?? []), alarm]);
  return [...kinds.values()];
}

// The newest alarm of a kind, and how many more there are.
const alarmLine = ([{ kind, context, at: when }, ...others]) =>
  h("li", {}, `${alarmWords(kind)}: `, context === null ? "everywhere" : contextLink(context), ", ", moment(when), others.length ? `, and ${count(others.length)} more` : "", ".");

// --- changes ---

// What a new service needs until clicks decide something, and how far it has come.
const steps = ({ funnel, feedback, unknowable }) => [
  [funnel.contexts > 0, "Rank calls arrive (POST /v1/rank)"],
  [feedback.accepted > 0 || feedback.clicked_pages > 0, "Clicks arrive (POST /v1/feedback)"],
  [feedback.closed_pages > 0, "Windows of pages have ended, so clicks count"],
  [!unknowable.some((text) => text.includes("holdout_share")), "Some pages are held out, to compare with"],
  [!unknowable.length, "The guardrail is armed"],
  [funnel.with_evidence > 0, "Pairs of items are being compared"],
  [false, `A pair is decided: ${expected(funnel.first_decision_days)}`],
];

function expected(days) {
  if (days === null) return "how long that takes cannot be said before some dozens of clicks have come";
  return days < 1 ? "expected within a day" : `expected in about ${plural(Math.round(days), "day")}`;
}

function drawChanges(view) {
  const { changes } = view;
  if (!changes.length) return h("ol", { class: "checklist" }, steps(view).map(([done, words]) => h("li", { class: done ? "fine" : "soft" }, h("span", { class: "symbol", "aria-hidden": "true" }, done ? "✓ " : "○ "), h("span", { class: "unseen" }, done ? "Done: " : "To come: "), words)));
  const rows = changes.slice(0, SHOWN).map(({ context, change }) =>
    h("li", {}, h("div", { class: "entry-head" }, contextLink(context, { class: "strong", "data-key": `change-${context}-${change.version}` }), h("span", { class: "soft small" }, moment(change.at))), h("p", { class: "small" }, reason(change))));
  const more = changes.length - SHOWN;
  return [h("ol", { class: "news" }, rows), more > 0 ? h("p", { class: "soft small" }, `and ${count(more)} more lately`) : null];
}

// --- servers ---

function drawServers(servers) {
  return h("ul", { class: "plain small" }, servers.map(({ name, here, obeys }) =>
    h("li", {}, h("span", { class: obeys ? "fine" : "soft", "aria-hidden": "true" }, obeys ? "✓ " : "○ "), id(name), obeys ? "" : " has not obeyed the last switch yet", here ? h("span", { class: "soft" }, " (answers here)") : "")));
}

function reason({ evidence, leader }) {
  if (!evidence.length) return `The leader is now ${leader.join(", ")}.`;
  const [pair, ...others] = evidence;
  const bold = (name) => h("bdi", { class: "strong" }, name);
  return [bold(pair.better), " is better than ", bold(pair.worse), lead(pair), others.length ? `, and ${plural(others.length, "other pair")}` : "", "."];
}
