// The leaders there were, newest first: those that clicks decided, and the others. Each says what came, rose, fell and
// left, and separates what its pairs explain from what production changed meanwhile.

import { h, id, lead, moment, plural } from "../dom.js";

const SHOWN = 12;

const CAUSES = {
  opened: () => "The first page: production's own ranking.",
  expired: ({ lost }) => `${plural(lost.length, "certificate")} came to the end of ${lost.length === 1 ? "its" : "their"} time.`,
  contradiction: ({ lost }) => `Decided pairs contradicted each other; ${plural(lost.length, "was", "were")} dropped.`,
  reset: ({ why }) => `Everything learnt was forgotten on an operator's word${why ? `: ${why}` : ""}.`,
  rollback: ({ why }) => `Rolled back by an operator${why ? `: ${why}` : ""}.`,
};

const byClicks = ({ cause }) => cause === "page";
const byOtherSize = ({ cause, evidence, lost }) => ["page", "expired"].includes(cause) && !evidence.length && !lost.length;

export const drawByClicks = (view, onRollback) => list(view, byClicks, onRollback, "None yet. A pair is decided when its comparisons leave no reasonable doubt.");
export const drawOthers = (view, onRollback) => list(view, (change) => !byClicks(change), onRollback, "None.");

function list({ versions, leader_version: current }, wanted, onRollback, nothing) {
  const chosen = versions.map((change, i) => ({ change, before: earlier(versions, i) })).filter(({ change }) => wanted(change));
  if (!chosen.length) return h("p", { class: "soft" }, nothing);
  const rows = chosen.slice(0, SHOWN).map(({ change, before }) => entry(change, before, current, onRollback));
  const hidden = chosen.length > SHOWN || versions.at(-1).version > 1;
  return [h("ol", { class: "timeline" }, rows), hidden ? h("p", { class: "soft small" }, "Older ones: GET /v1/contexts/…/changes") : null];
}

// The leader before: of the same page size, because each size has a leader of its own.
const earlier = (versions, i) => versions.slice(i + 1).find(({ leader }) => leader.length === versions[i].leader.length)?.leader;

function entry(change, before, current, onRollback) {
  const isCurrent = change.version === current;
  const back = isCurrent
    ? h("span", { class: "badge ok" }, "now")
    : h("button", { type: "button", class: "quiet small", "data-key": `rollback-${change.version}`, "aria-label": `Go back to version ${change.version}` }, "Go back…");
  if (!isCurrent) back.addEventListener("click", () => onRollback(change.version));
  return h(
    "li",
    { class: isCurrent ? "current" : null },
    h("div", { class: "entry-head" }, h("strong", {}, `Version ${change.version}`), h("span", { class: "soft small" }, moment(change.at)), back),
    explained(change),
    h("ol", { class: "chips" }, change.leader.map((item, place) => chip(item, place, before))),
    departures(change, before),
  );
}

function explained(change) {
  if (byOtherSize(change)) return h("p", { class: "small" }, "By decisions from pages of another length.");
  if (byClicks(change)) return h("ul", { class: "evidence small" }, change.evidence.map(proof));
  return h("p", { class: "small" }, (CAUSES[change.cause] ?? (() => change.cause))(change));
}

function chip(item, place, before) {
  const was = before ? before.indexOf(item) : place;
  if (was === place) return h("li", { class: "chip" }, id(item));
  const [tone, symbol, words] = was < 0 ? ["up", "★", "new"] : was > place ? ["up", "▲", "risen"] : ["down", "▼", "fallen"];
  return h("li", { class: `chip ${tone}` }, h("span", { "aria-hidden": "true" }, symbol), h("span", { class: "unseen" }, words), " ", id(item));
}

// Items that came or left without a decided pair of theirs did so because production's ranking changed.
function departures({ leader, evidence, lost }, before) {
  if (!before) return null;
  const decided = new Set([...evidence, ...lost].flatMap(({ better, worse }) => [better, worse]));
  const left = before.filter((item) => !leader.includes(item));
  const came = leader.filter((item) => !before.includes(item));
  const foreign = [...left, ...came].some((item) => !decided.has(item));
  return [
    left.length ? h("p", { class: "small left" }, h("span", { "aria-hidden": "true" }, "↓ "), "Left the page: ", names(left), ".") : null,
    foreign ? h("p", { class: "small soft" }, "Production's own ranking changed as well since the version before.") : null,
  ];
}

const names = (items) => items.flatMap((item, i) => [i ? ", " : "", id(item)]);

const proof = (pair) => h("li", {}, id(pair.better), " is better than ", id(pair.worse), lead(pair));
