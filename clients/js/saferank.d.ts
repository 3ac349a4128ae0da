/** What `saferank.js` puts on the page as `window.saferank`. */
export interface Saferank {
  /**
   * Say where the service is, and watch the lists of the page. Needed after `import "saferank-browser"`; a script tag
   * that loads `saferank.js` from the service has said it already.
   *
   * @param service address of the service, with a slash at its end
   * @param feedbackKey key that may report clicks; it is public, and good for nothing without a token
   */
  connect(service: string, feedbackKey?: string): void;

  /**
   * Report once that items of a page were clicked.
   *
   * @param token token of the page, as the service gave it; an empty one reports nothing
   * @param items the clicked items; none says that the page was seen
   * @returns true when the service, or the browser's queue of beacons, has taken the report
   */
  report(token: string, items?: readonly string[]): Promise<boolean>;

  /**
   * Report lists that were added to the page later, when they come into view.
   *
   * @param root where to look for elements with `data-saferank-token`; the document if absent
   */
  watch(root?: ParentNode): void;
}

declare global {
  var saferank: Saferank;
  interface Window {
    saferank: Saferank;
  }
}
