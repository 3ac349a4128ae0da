// The dashboard: asks the service every second or two while it is looked at, and draws what changed.

import { badge, chosen, drawContexts, moveInList, noteTraffic, rateOf, speed } from "./contexts.js";
import { confirm, wireConfirm } from "./confirm.js";
import { drawClicks } from "./clickthrough.js";
import { at, count, h, id, moment, refill, say, show } from "./dom.js";
import { drawMatrix, tally } from "./matrix.js";
import { drawRankings } from "./rankings.js";
import { counted, drawAlarms, drawExploring, drawSafety } from "./safety.js";
import { Problem, context, contexts, forgetKey, hasKey, keepKey, kill, metrics, rollback } from "./service.js";
import { drawTimeline } from "./timeline.js";

const QUICK = 1500;
const MANY = 200;
const state = { list: null, view: null, selected: null, heard: null, metrics: {}, polls: 0, timer: 0, polling: false, again: false };

// --- asking ---

async function poll() {
  clearTimeout(state.timer);
  if (document.hidden) return;
  if (state.polling) {
    state.again = true;
    return;
  }
  state.polling = true;
  try {
    await refresh();
    heard();
  } catch (problem) {
    lost(problem);
  }
  state.polling = false;
  const pause = state.again ? 0 : state.list && state.list.contexts.length > MANY ? 2 * QUICK : QUICK;
  state.again = false;
  if (!document.hidden && at("key-panel").hidden) state.timer = setTimeout(poll, pause);
}

async function refresh() {
  state.list = await contexts();
  noteTraffic(state.list.contexts, performance.now());
  const names = state.list.contexts;
  if (!names.some(({ name }) => name === state.selected)) state.selected = chosen(names)[0]?.name ?? names[0]?.name ?? null;
  const asked = state.selected;
  const view = asked === null ? null : await context(asked);
  if (asked === state.selected) state.view = view;
  if (state.polls++ % 5 === 0) state.metrics = await metrics();
  draw();
}

function heard() {
  state.heard = new Date();
  show(at("connection"), false);
  at("status").className = "status ok";
  say(at("status-text"), `live, ${state.heard.toLocaleTimeString("en-GB")}`);
}

function lost(problem) {
  if (problem instanceof Problem && (problem.status === 401 || problem.status === 403)) return askForKey(problem);
  at("status").className = "status bad";
  say(at("status-text"), "not connected");
  const since = state.heard ? `What you see is of ${state.heard.toLocaleTimeString("en-GB")}.` : "";
  const cause = problem instanceof Problem ? `The service says: ${problem.message}.` : "The service does not answer.";
  say(at("connection"), `⚠ Connection lost. ${cause} ${since} Trying again.`);
  show(at("connection"), true);
}

// --- the key ---

function askForKey(problem) {
  say(at("key-problem"), hasKey() ? `This key does not open the dashboard: ${problem.message}` : "");
  forgetKey();
  const first = at("key-panel").hidden;
  show(at("key-panel"), true);
  show(at("board"), false);
  show(at("forget-key"), false);
  at("kill-all").disabled = true;
  at("status").className = "status bad";
  say(at("status-text"), "needs a key");
  if (first) at("key").focus();
}

function openWithKey(event) {
  event.preventDefault();
  keepKey(at("key").value.trim());
  at("key").value = "";
  say(at("key-problem"), "");
  show(at("key-panel"), false);
  show(at("board"), true);
  poll();
}

function leave() {
  forgetKey();
  location.reload();
}

// --- drawing ---

function draw() {
  const { list, view, selected } = state;
  drawContexts(list.contexts, selected);
  drawGlobalSwitch(list.killed_everywhere);
  show(at("forget-key"), hasKey());
  show(at("empty"), view === null);
  show(at("view"), view !== null);
  if (view === null) return;
  document.title = `${view.name} · saferank`;
  refill(at("alarms"), [view.name, view.alarms, view.frozen], () => drawAlarms(view));
  refill(at("title"), [view.name, view.mode, view.killed, view.killed_everywhere, view.frozen, view.policy, view.rule, view.k, view.window_seconds], () => drawTitle(view));
  refill(at("tiles"), tiles(view), () => tiles(view).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  refill(at("rankings"), [view.base_ranking, view.candidates.length, view.leader, view.k], () => drawRankings(view));
  refill(at("clicks"), view.arms, () => drawClicks(view));
  refill(at("exploring"), [view.challenger, view.exploration, view.mode], () => drawExploring(view));
  refill(at("safety"), [view.alarms, counted(state.metrics)], () => drawSafety(view, state.metrics));
  refill(at("pairs"), [view.leader, view.pairs, view.challenger?.item, view.base_ranking, view.candidates], () => drawMatrix(view));
  refill(at("timeline"), [view.name, view.versions, view.leader_version], () => drawTimeline(view, goBack));
}

function drawGlobalSwitch({ on, since, why }) {
  const button = at("kill-all");
  button.disabled = false;
  button.className = on ? "primary" : "danger";
  say(button, on ? "Switch on everywhere…" : "Switch off everywhere…");
  show(at("killed-everywhere"), on);
  refill(at("killed-everywhere"), [on, since, why], () => (on ? [h("strong", {}, "■ Switched off everywhere"), since ? [" since ", moment(since)] : "", why ? `: ${why}` : "", ". Production's own ranking is served."].flat() : []));
}

function drawTitle(view) {
  const killed = view.killed.on;
  const button = h("button", { type: "button", class: killed ? "primary" : "danger", "data-key": "kill-one", "data-action": "kill-one" }, killed ? "Switch on…" : "Switch off…");
  button.addEventListener("click", () => askToSwitch(view.name, !killed));
  const why = killed ? h("p", { class: "small" }, "Switched off", view.killed.since ? [" since ", moment(view.killed.since)] : "", view.killed.why ? `: ${view.killed.why}` : "") : null;
  return [
    h("div", {}, h("h2", {}, id(view.name), " ", badge({ mode: view.mode, killed: killed || view.killed_everywhere.on, frozen: view.frozen !== null })),
      h("p", { class: "soft small" }, `${view.policy}, rule ${view.rule}, ${view.k} places, clicks collected for ${duration(view.window_seconds)}`), why),
    button,
  ];
}

const duration = (seconds) => (seconds >= 120 ? `${count(Math.round(seconds / 60))} min` : `${+seconds.toFixed(2)} s`);

function tiles(view) {
  const { decided, undecided, sure, neighbours } = tally(view);
  return [
    ["Pages a second", speed(rateOf(view.name))],
    ["Pages", count(view.pages)],
    ["Windows open", count(view.open_pages)],
    ["Leader", `no. ${view.leader_version}`],
    ["Neighbours decided", `${sure} of ${neighbours}`],
    ["Pairs decided", `${count(decided)} of ${count(decided + undecided)}`],
  ];
}

// --- acting ---

function askToSwitch(name, on) {
  const where = name === null ? "everywhere" : `in “${name}”`;
  confirm(
    {
      title: `Switch ${on ? "off" : "on"} ${where}?`,
      text: on
        ? "Production's own ranking is served from the next page on. Nothing is forgotten, and it can be undone."
        : "Pages are served by saferank again, going on from what it has learnt.",
      yes: on ? "Switch off" : "Switch on",
      danger: on,
      why: "from the dashboard",
    },
    async (why) => {
      await kill(name, on, why);
      poll();
    },
  );
}

function goBack(version) {
  const name = state.selected;
  confirm(
    {
      title: `Go back to leader ${version} of “${name}”?`,
      text: "What was learnt after it is forgotten (the log keeps it). It becomes a new version.",
      yes: "Go back",
      danger: true,
      why: "from the dashboard",
    },
    async (why) => {
      await rollback(name, version, why);
      poll();
    },
  );
}

// --- wiring ---

function selectFromAddress() {
  const found = /^#context=(.*)$/.exec(location.hash);
  if (!found) return;
  try {
    state.selected = decodeURIComponent(found[1]);
  } catch {
    return;
  }
  if (state.list) drawContexts(state.list.contexts, state.selected);
  poll();
}

at("kill-all").addEventListener("click", () => askToSwitch(null, !state.list.killed_everywhere.on));
at("forget-key").addEventListener("click", leave);
at("key-form").addEventListener("submit", openWithKey);
for (const name of ["input", "change"]) {
  at("filter").addEventListener(name, () => state.list && drawContexts(state.list.contexts, state.selected));
  at("order").addEventListener(name, () => state.list && drawContexts(state.list.contexts, state.selected));
}
at("contexts").addEventListener("keydown", moveInList);
addEventListener("hashchange", selectFromAddress);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(state.timer);
  else poll();
});
wireConfirm();
selectFromAddress();
poll();
