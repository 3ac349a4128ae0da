// One context: what it shows, why, and how it came about.

import { at, badge, count, h, id, moment, refill, show } from "../dom.js";
import { drawEffect } from "./effect.js";
import { drawMatrix, tally } from "./matrix.js";
import { drawRankings } from "./rankings.js";
import { drawAlarms, drawExploring, drawSafety } from "./safety.js";
import { drawByClicks, drawOthers } from "./timeline.js";

const PARTS = ["tiles", "rankings", "pairs", "clicks", "exploring", "safety", "by-clicks", "others"];

export function drawContext(view, effect, { onSwitch, onRollback }) {
  show(at("context"), true);
  for (const place of PARTS) show(at(place).closest("section, dl"), true);
  const { name, mode, killed, killed_everywhere: everywhere } = view;
  refill(at("alarms"), [name, view.alarms], () => drawAlarms(view));
  refill(at("title"), [name, mode, killed, everywhere, view.policy, view.rule, view.k, view.window_seconds], () => drawTitle(view, onSwitch));
  const facts = tiles(view);
  refill(at("tiles"), facts, () => facts.map(([words, value]) => h("div", {}, h("dt", {}, words), h("dd", {}, value))));
  refill(at("rankings"), [view.base_ranking, view.candidates.length, view.leader, view.k], () => drawRankings(view));
  refill(at("clicks"), [view.arms, effect], () => drawEffect(view, effect));
  refill(at("exploring"), [view.challenger, view.exploration, mode, killed.on, everywhere.on], () => drawExploring(view));
  refill(at("safety"), view.alarms, () => drawSafety(view));
  refill(at("pairs"), [view.leader, view.pairs, view.challenger?.item, view.base_ranking, view.candidates], () => drawMatrix(view));
  refill(at("by-clicks"), [name, view.versions, view.leader_version], () => drawByClicks(view, onRollback));
  refill(at("others"), [name, view.versions, view.leader_version], () => drawOthers(view, onRollback));
}

export function drawEmptyContext(name) {
  show(at("context"), true);
  for (const place of PARTS) show(at(place).closest("section, dl"), false);
  refill(at("title"), [name], () => h("div", {}, h("h2", {}, id(name)), h("p", { class: "soft" }, "There is no such context. One appears with its first call of POST /v1/rank.")));
}

function drawTitle(view, onSwitch) {
  const killed = view.killed.on;
  const button = h("button", { type: "button", class: killed ? "primary" : "danger", "data-key": "kill-one", "data-action": "kill-one" }, killed ? "Switch on…" : "Switch off…");
  button.addEventListener("click", () => onSwitch(view.name, !killed));
  const why = killed ? h("p", { class: "advice" }, "■ Switched off", view.killed.since ? [" since ", moment(view.killed.since)] : "", view.killed.why ? `: ${view.killed.why}` : "") : null;
  return [
    h("div", {}, h("h2", {}, id(view.name), " ", badge({ mode: view.mode, killed: killed || view.killed_everywhere.on })),
      h("p", { class: "soft small" }, `${view.policy}, rule ${view.rule}, ${view.k} places, clicks collected for ${duration(view.window_seconds)}`), why),
    button,
  ];
}

const duration = (seconds) => (seconds >= 120 ? `${count(Math.round(seconds / 60))} min` : `${+seconds.toFixed(2)} s`);

function tiles(view) {
  const { decided, undecided, sure, neighbours } = tally(view);
  const page = view.base_ranking.slice(0, view.k);
  const moved = view.leader.filter((item, place) => page[place] !== item).length;
  return [
    ["Pages", count(view.pages)],
    ["Windows open", count(view.open_pages)],
    ["Places changed", `${moved} of ${view.k}`],
    ["Neighbours decided", `${sure} of ${neighbours}`],
    ["Pairs decided", `${count(decided)} of ${count(decided + undecided)}`],
    ["Version", count(view.leader_version)],
  ];
}
