// Calls of the service. The key, if one is asked for, lives in this tab's sessionStorage and goes nowhere else.

const KEY = "saferank-key";
const PATIENCE = 8000;

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
export const keepKey = (key) => sessionStorage.setItem(KEY, key);
export const forgetKey = () => sessionStorage.removeItem(KEY);

async function ask(path, body) {
  const headers = { Accept: "application/json" };
  if (hasKey()) headers["X-API-Key"] = sessionStorage.getItem(KEY);
  const request = { headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(PATIENCE) };
  if (body !== undefined) {
    request.method = "POST";
    request.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, request);
  if (answer.ok) return answer.headers.get("content-type")?.includes("json") ? answer.json() : answer.text();
  let detail = `the service answered with status ${answer.status}`;
  try {
    detail = (await answer.json()).detail ?? detail;
  } catch {
    // not a problem document: the status has to do
  }
  throw new Problem(answer.status, detail);
}

const path = (context) => `v1/contexts/${encodeURIComponent(context)}`;

export const overview = () => ask("v1/overview");
export const contexts = () => ask("v1/contexts");
export const context = (name) => ask(path(name));
export const effect = (name) => ask(`${path(name)}/effect`);
export const kill = (name, on, why) => ask(name === null ? "v1/kill" : `${path(name)}/kill`, { on, why });
export const rollback = (name, version, why) => ask(`${path(name)}/rollback`, { version, why });
