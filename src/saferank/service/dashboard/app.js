// The dashboard: asks the service every second or two while it is looked at, and draws what changed.

import { confirm, wireConfirm } from "./confirm.js";
import { drawContext, drawEmptyContext } from "./context/page.js";
import { at, h, moment, refill, say, show } from "./dom.js";
import { drawOverview } from "./overview/page.js";
import { drawTable, setContexts, wireTable } from "./overview/table.js";
import { Problem, context, contexts, effect, forgetKey, hasKey, keepKey, kill, overview, rollback } from "./service.js";

const QUICK = 1500;
const SLOWEST = 30000;
const CONTEXTS_A_POLL = 200; // a list of more is asked for less often
const state = { name: null, overview: null, view: null, switches: null, heard: null, listed: 0, size: 0, timer: 0, polling: false, again: false };

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
    await (state.name === null ? refreshOverview() : refreshContext(state.name));
    heard();
  } catch (problem) {
    lost(problem);
  }
  state.polling = false;
  const pause = state.again ? 0 : QUICK;
  state.again = false;
  if (!document.hidden && at("key-panel").hidden) state.timer = setTimeout(poll, pause);
}

async function refreshOverview() {
  const asksForList = performance.now() - state.listed >= Math.min(SLOWEST, (QUICK * state.size) / CONTEXTS_A_POLL);
  const [view, list] = await Promise.all([overview(), asksForList ? contexts() : null]);
  if (state.name !== null) return;
  state.overview = view;
  if (list) {
    state.listed = performance.now();
    state.size = list.contexts.length;
    setContexts(list.contexts);
  }
  document.title = "saferank";
  drawSwitch(view.killed_everywhere, !view.effect.guardrail?.stopped); // the guardrail has a banner of its own
  drawOverview(view);
  drawTable();
}

async function refreshContext(name) {
  const [view, found] = await Promise.all([unlessUnknown(context(name)), unlessUnknown(effect(name))]);
  if (name !== state.name) return;
  document.title = `${name} · saferank`;
  state.view = view;
  if (view === null) {
    drawEmptyContext(name);
    if (state.switches === null) drawSwitch((await overview()).killed_everywhere);
    return;
  }
  drawSwitch(view.killed_everywhere);
  drawContext(view, found, { onSwitch: askToSwitch, onRollback: goBack });
}

async function unlessUnknown(answer) {
  try {
    return await answer;
  } catch (problem) {
    if (problem instanceof Problem && problem.status === 404) return null;
    throw problem;
  }
}

function heard() {
  state.heard = new Date();
  show(at("connection"), false);
  at("status").className = "status ok";
  say(at("status-text"), `up to date, ${state.heard.toLocaleTimeString("en-GB")}`);
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
  show(at("main"), false);
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
  show(at("main"), true);
  poll();
}

function leave() {
  forgetKey();
  location.reload();
}

// --- switching ---

function drawSwitch(switched, told = true) {
  state.switches = switched;
  const { on, since, why, by_operator: byOperator } = switched;
  const button = at("kill-all");
  button.disabled = on && Boolean(byOperator); // no tenant can end it
  button.className = on ? "primary" : "danger";
  say(button, on ? "Switch on everywhere…" : "Switch off everywhere…");
  show(at("forget-key"), hasKey());
  show(at("killed-everywhere"), on && told);
  refill(at("killed-everywhere"), [on, since, why, byOperator], () => (on ? [h("strong", {}, byOperator ? "■ Switched off for all tenants by the operator of the service" : "■ Switched off everywhere"), since ? [" since ", moment(since)] : "", why ? `: ${why}` : "", ". Production's own ranking is served."].flat() : []));
}

function askToSwitch(name, on) {
  const where = name === null ? "everywhere" : `in “${name}”`;
  confirm(
    {
      title: `Switch ${on ? "off" : "on"} ${where}?`,
      text: on
        ? "Production's own ranking is served from the next page on. Nothing is forgotten, and it can be undone."
        : "Pages are served by saferank again, continuing from what it has learnt.",
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
  const name = state.name;
  confirm(
    {
      title: `Go back to version ${version} of “${name}”?`,
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

// --- where we are ---

function named() {
  const found = /^#context=(.*)$/.exec(location.hash);
  try {
    return found ? decodeURIComponent(found[1]) : null;
  } catch {
    return null;
  }
}

function go(first) {
  const name = named();
  if (name === state.name && !first) return;
  state.name = name;
  state.view = null;
  state.listed = 0;
  refill(at("alarms"), [], () => []);
  show(at("overview"), name === null);
  show(at("context"), false);
  if (!first) {
    scrollTo(0, 0);
    at("main").focus({ preventScroll: true });
  }
  poll();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which context is shown
  at("main").focus();
});
at("kill-all").addEventListener("click", () => askToSwitch(null, !state.switches.on));
at("forget-key").addEventListener("click", leave);
at("key-form").addEventListener("submit", openWithKey);
addEventListener("hashchange", () => go(false));
addEventListener("resize", () => state.overview && state.name === null && drawOverview(state.overview));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(state.timer);
  else poll();
});
wireConfirm();
wireTable();
go(true);
