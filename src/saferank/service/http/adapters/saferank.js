/* saferank.js: reports impressions and clicks of ranked lists. See docs/engineers/browser.md.
 *   <script src="https://SERVICE/saferank.js" data-key="FEEDBACK KEY" defer></script>
 *   <ol data-saferank-token="TOKEN"><li data-saferank-item="ITEM">...</li></ol>
 * In a bundle: saferank.connect("https://SERVICE/", "FEEDBACK KEY");
 */
(() => {
  "use strict";
  const tag = document.currentScript;
  const sent = new Set();
  let home, key;

  const beacon = (body) => {
    const to = home + "v1/beacon" + (key ? "?key=" + encodeURIComponent(key) : "");
    return !!navigator.sendBeacon && navigator.sendBeacon(to, JSON.stringify(body));
  };

  /* Report once that `items` of the page with this token were clicked; none: that the page was seen. */
  const report = (token, items = []) => {
    const mark = JSON.stringify([token, items]);
    if (!home || !token || sent.has(mark)) return Promise.resolve(false);
    sent.add(mark);
    const body = { token, clicks: items };
    const headers = { "Content-Type": "application/json" };
    if (key) headers.Authorization = "Bearer " + key;
    const options = { method: "POST", keepalive: true, credentials: "omit", headers, body: JSON.stringify(body) };
    try {
      /* A refusal is final; what did not arrive goes by the beacon. Reporting twice counts once. */
      return fetch(home + "v1/feedback", options).then((answer) => answer.ok, () => beacon(body));
    } catch {
      return Promise.resolve(beacon(body));
    }
  };

  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      report(target.dataset.saferankToken);
    }
  });
  const watch = (root = document) => {
    for (const list of root.querySelectorAll("[data-saferank-token]")) seen.observe(list);
  };

  const clicked = (event) => {
    if (event.type === "auxclick" && event.button !== 1) return;
    const item = event.target.closest && event.target.closest("[data-saferank-item]");
    const list = item && item.closest("[data-saferank-token]");
    if (list) report(list.dataset.saferankToken, [item.dataset.saferankItem]);
  };
  addEventListener("click", clicked, true);
  addEventListener("auxclick", clicked, true);

  /* Say where the service is, and report the lists of the page. The script's own tag says it without a call. */
  const connect = (service, feedbackKey) => {
    home = new URL(".", service).href;
    key = feedbackKey;
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", () => watch());
    else watch();
  };
  window.saferank = { connect, report, watch };
  if (tag && new URL(tag.src, location).pathname.endsWith("/saferank.js")) connect(tag.src, tag.dataset.key);
})();
