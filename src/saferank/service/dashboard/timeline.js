// The leaders there were, newest first, each with what caused it and the evidence.

import { count, h, id, moment, plural } from "./dom.js";

const SHOWN = 12;

const CAUSES = {
  opened: () => "first page: production's own ranking",
  page: (change) => ["clicks on page ", change.impression_id ? h("code", { title: change.impression_id }, change.impression_id.slice(0, 8)) : "", " decided it"],
  catalogue: () => "production's ranking or its candidates changed",
  rollback: (change) => ["rolled back", change.why ? `: ${change.why}` : ""],
};

export function drawTimeline({ versions, leader_version: current }, onRollback) {
  if (!versions.length) return h("p", { class: "soft" }, "No leader yet.");
  const rows = versions.slice(0, SHOWN).map((change, i) => entry(change, versions[i + 1], current, onRollback));
  const more = versions.length > SHOWN ? h("p", { class: "soft small" }, `Older ones: GET /v1/contexts/…/changes`) : null;
  return [h("ol", { class: "timeline", reversed: true }, rows), more];
}

function entry(change, previous, current, onRollback) {
  const isCurrent = change.version === current;
  const back = isCurrent
    ? h("span", { class: "badge ok" }, "now")
    : h("button", { type: "button", class: "quiet small", "data-key": `rollback-${change.version}` }, "Go back to it…");
  if (!isCurrent) back.addEventListener("click", () => onRollback(change.version));
  return h(
    "li",
    { class: isCurrent ? "current" : null },
    h("div", { class: "entry-head" }, h("strong", {}, `Leader ${change.version}`), moment(change.at), h("span", { class: "soft" }, (CAUSES[change.cause] ?? (() => change.cause))(change)), back),
    h("ol", { class: "chips" }, change.leader.map((item, place) => chip(item, place, previous?.leader))),
    change.evidence.length ? h("ul", { class: "evidence small" }, change.evidence.map(proof)) : null,
  );
}

function chip(item, place, before) {
  if (!before) return h("li", { class: "chip" }, id(item));
  const was = before.indexOf(item);
  if (was === place) return h("li", { class: "chip" }, id(item));
  const [tone, symbol, words] = was < 0 ? ["up", "★", "new"] : was > place ? ["up", "▲", "risen"] : ["down", "▼", "fallen"];
  return h("li", { class: `chip ${tone}` }, h("span", { "aria-hidden": "true" }, symbol), h("span", { class: "unseen" }, words), " ", id(item));
}

const proof = ({ better, worse, s, n, decided }) =>
  h("li", {}, id(better), decided ? " is better than " : " is ahead of ", id(worse), `: lead ${count(s)} in ${plural(n, "comparison")}`);
