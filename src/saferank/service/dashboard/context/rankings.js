// Production's page on the left, the leader on the right, and lines from where an item stood to where it stands.

import { h, id, svg } from "../dom.js";

const ROW = 30;

export function drawRankings({ base_ranking: base, candidates, leader, k }) {
  const page = base.slice(0, k);
  const entered = leader.filter((item) => !page.includes(item));
  const left = page.filter((item) => !leader.includes(item));
  const before = [...page, ...entered];
  const after = [...leader, ...left];
  const height = ROW * Math.max(before.length, after.length);
  const moved = leader.filter((item, place) => page[place] !== item).length;
  return [
    h("p", { class: "soft small" }, moved ? summary(moved, page.length) : "The leader is production's own page: clicks have changed nothing.", left.length ? [" Left the page: ", left.flatMap((item, i) => [i ? ", " : "", id(item)]), "."] : null),
    h(
      "div",
      { class: "bump" },
      h("div", { class: "column" }, h("h4", {}, "Production"), list(before, k, (item, place) => wasAt(item, place, base, leader, candidates, k))),
      h("div", { class: "column lines", "aria-hidden": "true" }, h("h4", {}, "\u00a0"), lines(before, after, k, height)),
      h("div", { class: "column" }, h("h4", {}, "Leader"), list(after, k, (item, place) => isAt(item, place, base, leader, k))),
    ),
  ];
}

const summary = (moved, places) => `${moved} of ${places} places differ from production's page, by decided pairs.`;

function list(items, k, note) {
  return h(
    "ol",
    { class: "ranking" },
    items.map((item, place) =>
      h(
        "li",
        { class: place >= k ? "outside" : null },
        h("span", { class: "place" }, place < k ? place + 1 : "–"),
        id(item),
        note(item, place),
      ),
    ),
  );
}

function wasAt(item, place, base, leader, candidates, k) {
  if (place < k) return null;
  const rank = base.indexOf(item);
  return h("span", { class: "move soft" }, rank >= 0 ? `rank ${rank + 1}` : "unranked");
}

function isAt(item, place, base, leader, k) {
  if (place >= k) return h("span", { class: "move down" }, "▼ left");
  const rank = base.indexOf(item);
  if (rank < 0) return h("span", { class: "move up" }, "★ new");
  if (rank === place) return h("span", { class: "move soft" }, "=");
  const by = rank - place;
  const words = by > 0 ? `up ${by}` : `down ${-by}`;
  return h("span", { class: `move ${by > 0 ? "up" : "down"}` }, h("span", { "aria-hidden": "true" }, by > 0 ? `▲ ${by}` : `▼ ${-by}`), h("span", { class: "unseen" }, words));
}

function lines(before, after, k, height) {
  const middle = (place) => ROW * (place + 0.5);
  return svg(
    "svg",
    { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", height },
    before.map((item, from) => {
      const to = after.indexOf(item);
      const tone = to >= k ? "down" : from > to ? "up" : from < to ? "down" : "same";
      const curve = `M0 ${middle(from)} C50 ${middle(from)} 50 ${middle(to)} 100 ${middle(to)}`;
      return svg("path", { d: curve, class: `line ${tone}` });
    }),
  );
}
