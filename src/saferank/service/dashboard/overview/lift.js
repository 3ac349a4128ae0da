// Clicks a page of served pages relative to the holdout, everything so far together, with what was switched meanwhile.
// The line is an estimate. Only the bar at its end is an interval, and that one is valid at every look.

import { DAY, count, h, id, moment, perPage, plural, relative, signedPercent, svg } from "../dom.js";

const HEIGHT = 220;
const EDGE = { left: 58, right: 26, top: 26, bottom: 26 };
const HOUR = DAY / 24;
const [LEAST, MOST] = [-0.5, 1]; // digits of differences beyond a factor of two say nothing, and the picture ends there
const MARKS = {
  kill: ["■", "switched off"],
  unkill: ["●", "switched on"],
  rollback: ["↶", "rolled back"],
  guardrail: ["■", "stopped by the guardrail"],
  reset: ["○", "begun again"],
  settings: ["⚙", "settings changed"],
  traffic: ["◔", "share of visitors changed"],
  release: ["◆", "another release"],
  alarm: ["⚠", "alarm"],
};

// The service's estimate by hour or day, from everything compared until its end: that of the interval, so contexts and
// days with other shares or other clicks do not mix. Bins in which nothing can be said have none.
export function lifts(bins) {
  const size = binSize(bins);
  let pages = 0;
  return bins.flatMap(({ begin, served, holdout, lift }) => {
    pages += served.pages + holdout.pages;
    return lift === null ? [] : [{ at: Date.parse(begin) + size / 2, lift, pages }];
  });
}

// The service sends hours until there are two days.
const binSize = (bins) => (bins.length && Date.parse(bins.at(-1).begin) - Date.parse(bins[0].begin) >= 2 * DAY ? DAY : HOUR);

export function drawLift(view, width) {
  const points = lifts(view.bins);
  const interval = view.effect.why_not ? null : view.effect.clicks_relative;
  if (view.effect.why_not && !view.effect.holdout.pages) return noHoldout(view.effect.why_not);
  const picture = points.length > 1 ? chart(points, binSize(view.bins), interval, view.markers, Math.max(260, width)) : oneDay(view, interval);
  return [picture, drawMarks(view.markers)];
}

function noHoldout(why) {
  const setting = why.includes("holdout_share") ? h("p", {}, h("code", {}, "saferank serve --set holdout_share=0.1")) : null;
  return h("div", { class: "blank-state" }, h("p", { class: "strong" }, "Nothing to compare with yet"), h("p", { class: "soft" }, `${why.replace(/^./, (c) => c.toUpperCase())}.`), setting);
}

function oneDay(view, interval) {
  const { served, holdout, why_not: why } = view.effect;
  const rows = h(
    "table",
    { class: "figures" },
    h("thead", {}, h("tr", {}, ["", "Pages", "Clicks", "Clicks a page"].map((name) => h("th", { scope: "col", class: name ? "number" : null }, name)))),
    h("tbody", {}, [["Served", served], ["Holdout", holdout]].map(([name, arm]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, count(arm.pages)), h("td", { class: "number" }, count(arm.clicks)), h("td", { class: "number" }, perPage(arm))))),
  );
  const words = why ? `No interval: ${why}.` : !interval || interval.estimate === null ? "Too few pages to tell a difference." : `Difference ${relative(interval.estimate)}, at every look ${interval.high === null ? `above ${relative(interval.low)}` : `between ${relative(interval.low)} and ${relative(interval.high)}`}.`;
  return [rows, h("p", { class: "small" }, words), h("p", { class: "soft small" }, "The picture over time begins with the second hour.")];
}

// --- the picture ---

function chart(points, size, interval, markers, width) {
  const ends = interval && interval.estimate !== null ? [interval.low, interval.high ?? interval.estimate].map(within) : [];
  const scale = scales(points, ends, width);
  const line = points.map(({ at, lift }, i) => `${i ? "L" : "M"}${scale.x(at).toFixed(1)} ${scale.y(lift).toFixed(1)}`).join("");
  const last = points.at(-1);
  const said = `After ${plural(points.length, size === DAY ? "day" : "hour")} clicks a page of served pages against the holdout: ${relative(last.lift)}.`;
  return h("figure", {}, svg(
    "svg",
    { class: "chart", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": said },
    scale.ticks.map((tick) => grid(tick, scale, width)),
    times(points, size, scale),
    shownMarks(markers, points, size).map((mark) => markLine(mark, scale)),
    svg("path", { class: "lift-line", d: line }),
    points.length <= 48 ? points.map(({ at, lift, pages }) => svg("circle", { class: "lift-point", cx: scale.x(at), cy: scale.y(lift), r: 2.5 }, svg("title", {}, `${timeName(at, size)}: ${relative(lift)}, ${plural(pages, "page")} so far`))) : null,
    ends.length ? whisker(interval, scale, width) : null,
  ), h("figcaption", { class: "soft small" }, "Everything so far together. ", ends.length ? "The bar at the end is the interval that holds at every look." : ""));
}

const within = (lift) => Math.max(LEAST, Math.min(MOST, lift));

function scales(points, ends, width) {
  const values = [0, ...points.map(({ lift }) => within(lift)), ...ends];
  const top = Math.max(...values), low = Math.min(...values);
  const step = niceStep((top - low || 0.02) / 4);
  const from = Math.floor(low / step) * step, to = Math.max(from + step, Math.ceil(top / step) * step);
  const first = points[0].at, last = points.at(-1).at;
  const ticks = [];
  for (let tick = from; tick <= to + step / 2; tick += step) ticks.push(Math.abs(tick) < step / 2 ? 0 : tick);
  return {
    x: (at) => EDGE.left + ((at - first) / (last - first || 1)) * (width - EDGE.left - EDGE.right),
    y: (lift) => EDGE.top + ((to - within(lift)) / (to - from)) * (HEIGHT - EDGE.top - EDGE.bottom),
    ticks,
    digits: step < 0.01 ? 1 : 0,
    right: width - EDGE.right,
  };
}

function niceStep(rough) {
  const unit = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * unit).find((step) => step >= rough);
}

function grid(tick, { y, digits }, width) {
  const words = tick === 0 ? "0 %" : tick >= MOST ? "twice" : tick <= LEAST ? "half" : signedPercent(tick, digits);
  return [svg("line", { class: tick === 0 ? "zero" : "grid", x1: EDGE.left, x2: width - EDGE.right + 14, y1: y(tick), y2: y(tick) }), svg("text", { class: "tick", x: EDGE.left - 8, y: y(tick) + 4, "text-anchor": "end" }, words)];
}

function times(points, size, { x }) {
  const shown = points.length > 2 ? [points[0], points[Math.floor((points.length - 1) / 2)], points.at(-1)] : points;
  return shown.map((point, i) => svg("text", { class: "tick", x: x(point.at), y: HEIGHT - 6, "text-anchor": i === 0 ? "start" : i === shown.length - 1 ? "end" : "middle" }, timeName(point.at, size)));
}

// The day, or the hour, of a bin; all times of the picture are UTC.
function timeName(at, size) {
  const date = new Date(at - size / 2);
  return size === DAY ? date.toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }) : date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
}

const shownMarks = (markers, points, size) => markers.filter(({ at }) => Date.parse(at) >= points[0].at - size / 2 && Date.parse(at) <= points.at(-1).at + size / 2);

function markLine({ at, kind, text, context }, { x, right }) {
  const place = Math.max(EDGE.left, Math.min(right, x(Date.parse(at))));
  const [symbol, words] = MARKS[kind];
  return svg("g", { class: `mark-line ${kind}` }, svg("title", {}, `${words}${context === null ? " everywhere" : ` in ${context}`}: ${text}`), svg("line", { x1: place, x2: place, y1: EDGE.top - 6, y2: HEIGHT - EDGE.bottom }), svg("text", { x: place, y: EDGE.top - 10, "text-anchor": "middle" }, symbol));
}

function whisker({ low, high, estimate }, { y, right }, width) {
  const place = right + 8, tops = high === null ? EDGE.top : y(high);
  const look = low > 0 ? "up" : high !== null && high < 0 ? "down" : "level";
  return svg("g", { class: `whisker-bar ${look}` }, svg("title", {}, `${relative(estimate)}, between ${relative(low)} and ${high === null ? "any gain" : relative(high)}`), svg("line", { x1: place, x2: place, y1: tops, y2: y(low) }), svg("line", { x1: place - 5, x2: place + 5, y1: y(low), y2: y(low) }), high === null ? null : svg("line", { x1: place - 5, x2: place + 5, y1: tops, y2: tops }), svg("circle", { cx: place, cy: y(estimate), r: 4 }));
}

// --- what was switched ---

function drawMarks(markers) {
  if (!markers.length) return null;
  const rows = markers.slice(-4).reverse().map(({ at, kind, context, text }) => {
    const [symbol, words] = MARKS[kind];
    return h("li", { class: `mark-row ${kind}` }, h("span", { class: "symbol", "aria-hidden": "true" }, symbol), h("span", {}, h("span", { class: "strong" }, words), context === null ? " everywhere" : [" in ", id(context)], text ? `: ${text}` : ""), h("span", { class: "soft small" }, moment(at)));
  });
  return h("ul", { class: "marks small" }, rows);
}

