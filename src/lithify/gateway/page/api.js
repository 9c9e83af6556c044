// Requests to the gateway that serves this page. Errors are problems (RFC 9457) with a code and a hint.

const API = new URL("api/v1", document.baseURI).pathname;
const TOKEN = "lithify-token";
const WAIT_MS = 60000;
const SILENT_MS = 40000; // a gateway that is there says something every 15 s

export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.message || told.title || `HTTP ${status}`);
    this.status = status;
    this.code = told.code || told.title || null;
    this.hint = told.hint || null;
  }
}

let asking = null; // who asks for a token, set by the page
let refused = false; // a person was asked and gave none: nothing asks again until the page is loaded anew

export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;
export const asksForTokens = (ask) => { asking = ask; };
export const topicPath = (topic, rest = "") => `/topics/${encodeURIComponent(topic)}${rest}`;

function headers(more) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function problemOf(response) {
  try {
    return new Problem(response.status, await response.json());
  } catch {
    return new Problem(response.status, { title: response.statusText });
  }
}

async function sent(path, options) {
  for (;;) {
    const used = sessionStorage.getItem(TOKEN);
    let response;
    try {
      response = await fetch(API + path, { ...options, headers: headers(options.headers || {}) });
    } catch (error) {
      if (error.name === "AbortError" || error.name === "TimeoutError") throw error;
      throw new Problem(0, { detail: "The gateway cannot be reached.", hint: "It is tried again until it answers." });
    }
    if (response.status !== 401 || !asking) {
      if (!response.ok && response.status !== 304) throw await problemOf(response);
      return response;
    }
    const problem = await problemOf(response);
    if (refused) throw problem;
    if (sessionStorage.getItem(TOKEN) !== used) continue; // another request has asked meanwhile
    const token = await asking(problem, used !== null);
    refused = !token;
    if (refused) throw problem;
    sessionStorage.setItem(TOKEN, token);
  }
}

// Forgets the token, and asks for one if it is needed.
export function useAnotherToken() {
  sessionStorage.removeItem(TOKEN);
  location.reload();
}

export async function ask(method, path, body) {
  const options = { method, signal: AbortSignal.timeout(WAIT_MS) };
  if (body !== undefined) Object.assign(options, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  const response = await sent(path, options);
  return response.status === 204 ? null : response.json();
}

export const get = (path) => ask("GET", path);

// All items of a list that is sent in pages, at most `most`.
export async function list(path, most = 10000) {
  const items = [];
  for (let next = path; next && items.length < most;) {
    const page = await get(next);
    items.push(...page.items);
    next = page.next ? page.next.replace(/^.*?\/api\/v1/, "") : null;
  }
  return items;
}

// Server-sent events by `fetch`, since an EventSource sends no token. Ends when the connection does, or is silent.
export async function stream(path, tell) {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENT_MS);
  try {
    const response = await sent(path, { signal: silent.signal, cache: "no-store" });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENT_MS);
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      parts.forEach((part) => toldBy(part, tell));
    }
  } finally {
    clearTimeout(timer);
  }
}

function toldBy(part, tell) {
  const event = {};
  for (const line of part.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) event[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (event.data) tell(event.event, JSON.parse(event.data), Number(event.id));
}
