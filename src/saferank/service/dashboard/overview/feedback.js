// Whether clicks come back as they should, and the latest alarms.

import { alarmWords } from "../alarms.js";
import { contextLink, count, h, moment, percent } from "../dom.js";

const MANY_PAGES = 200;
const LATE = 0.05;
const REFUSED = 0.02;

export function drawFeedback({ feedback, alarms }) {
  return [advice(feedback), drawReports(feedback), h("h4", {}, "Alarms"), drawAlarms(alarms)];
}

const share = (n, all) => (all ? n / all : 0);

function advice({ closed_pages: closed, clicked_pages: clicked, accepted, duplicate, late, refused }) {
  const all = accepted + duplicate + late + total(refused);
  const found = [];
  if (closed > MANY_PAGES && clicked === 0) found.push("No page has a click. Are clicks reported to POST /v1/feedback?");
  if (share(late, all) > LATE) found.push("Many reports come after their page's window: report sooner, or set a longer window_seconds.");
  if (share(total(refused), all) > REFUSED) found.push("Many reports are refused; the reasons are below.");
  return found.map((text) => h("p", { class: "advice" }, h("span", { "aria-hidden": "true" }, "⚠ "), text));
}

const total = (refused) => Object.values(refused).reduce((sum, n) => sum + n, 0);

function drawReports({ closed_pages: closed, clicked_pages: clicked, accepted, duplicate, late, refused }) {
  const all = accepted + duplicate + late + total(refused);
  const reasons = Object.entries(refused).sort((a, b) => b[1] - a[1]);
  return h(
    "table",
    { class: "figures" },
    h("caption", { class: "unseen" }, "Reports of clicks"),
    h("tbody", {},
      line("Closed pages with a click", clicked, closed),
      h("tr", {}, h("th", { scope: "rowgroup", colspan: 3, class: "soft small" }, "Reports since this process started")),
      line("Accepted", accepted, all),
      line("Nothing new in them", duplicate, all),
      line("Too late to count", late, all, share(late, all) > LATE),
      line("Refused", total(refused), all, share(total(refused), all) > REFUSED),
      reasons.map(([reason, n]) => line(reason, n, all, false, "reason")),
    ),
  );
}

function line(words, n, all, warns = false, look = null) {
  return h("tr", { class: warns ? "warns" : look }, h("th", { scope: "row" }, warns ? h("span", { "aria-hidden": "true" }, "⚠ ") : null, words), h("td", { class: "number" }, count(n)), h("td", { class: "number soft" }, all ? percent(n / all) : "–"));
}

function drawAlarms(alarms) {
  if (!alarms.length) return h("p", { class: "fine" }, h("span", { class: "symbol", "aria-hidden": "true" }, "✓ "), "None so far.");
  return h("ul", { class: "news" }, alarms.slice(0, 5).map(({ at, context, kind, detail }) =>
    h("li", {}, h("div", { class: "entry-head" }, h("span", { class: "strong" }, alarmWords(kind)), h("span", { class: "soft small" }, moment(at))), h("p", { class: "small soft" }, context === null ? "everywhere" : contextLink(context), ` ${detail}`))));
}
