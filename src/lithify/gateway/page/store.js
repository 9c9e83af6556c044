// What the page knows: the topics, what runs and what has happened, kept up to date by the events of the gateway.

import { get, list, stream } from "./api.js";

const EVENTS_KEPT = 500;
const ROUNDS_KEPT = 24;
const LONGEST_WAIT_MS = 10000;
const LOOK_MS = 5000; // between two looks of a page that may not follow
const AGAIN_MS = 3000; // after the topics could not be read

export const store = {
  gateway: null, // {gateway, run, page, version}
  topics: new Map(), // by name, rows of the overview
  loaded: false,
  running: new Map(), // rounds of the cleaner, by work
  jobs: new Map(), // by id, as events tell of them
  rounds: new Map(), // by topic, its latest rounds
  events: [], // newest first
  live: "connecting", // live, lost, limited (it may not follow), refused (it has no token)
  trouble: null, // what the gateway has said, if it is not live
  error: null, // why the catalog cannot be read
  skew_ms: 0, // the gateway's clock before this one
};

const listeners = new Set();
let waiting = new Set();

export const now = () => Date.now() + store.skew_ms;

// Calls `update(kinds)` once per frame in which something changed; returns how to stop that.
export function watch(update) {
  listeners.add(update);
  return () => listeners.delete(update);
}

export function changed(kind) {
  if (!waiting.size) requestAnimationFrame(() => {
    const kinds = waiting;
    waiting = new Set();
    for (const update of [...listeners]) update(kinds);
  });
  waiting.add(kind);
}

function setLive(live, trouble = null) {
  if (store.live === live && store.trouble === trouble) return;
  store.live = live;
  store.trouble = trouble;
  changed("live");
}

let meanwhile = null; // what events have told of topics since all of them were asked for
let greetings = 0;

function takeRows(data) {
  for (const row of data.topics) store.topics.set(row.topic, { ...row, at_ms: data.now_ms });
  for (const name of data.gone) store.topics.delete(name);
}

async function loadTopics() {
  const mine = meanwhile = [];
  const overview = await get("/status");
  if (meanwhile !== mine) return; // they were asked for again
  meanwhile = null;
  store.skew_ms = overview.now_ms - Date.now();
  store.topics = new Map(overview.topics.map((topic) => [topic.topic, { ...topic, at_ms: overview.now_ms }]));
  mine.forEach(takeRows);
  store.loaded = true;
  store.error = null;
  changed("topics");
}

// Until it succeeds, or another gateway greets, or the same one once more.
async function loadAtLast() {
  const mine = ++greetings;
  while (mine === greetings) {
    try {
      return await loadTopics();
    } catch (error) {
      store.error = error.message;
      changed("catalog");
    }
    await waited(AGAIN_MS);
  }
}

const takes = {
  hello(data, number) {
    if (store.gateway && !number) { // what follows is all that there is
      store.running.clear();
      store.jobs.clear();
      store.events.length = 0;
      store.rounds.clear();
      changed("running");
      changed("restarted");
    }
    store.gateway = data;
    changed("gateway");
    loadAtLast();
  },
  topics(data) {
    meanwhile?.push(data);
    takeRows(data);
    changed("topics");
  },
  catalog(data) {
    store.error = data.error;
    changed("catalog");
  },
  clock(data) {
    store.skew_ms = data.now_ms - Date.now();
    changed("topics");
  },
  round(data) {
    if (data.ended) store.running.delete(data.work);
    else store.running.set(data.work, data);
    changed("running");
  },
  job(data) {
    store.jobs.delete(data.job);
    store.jobs.set(data.job, data);
    while (store.jobs.size > 200) store.jobs.delete(store.jobs.keys().next().value);
    if (data.ended_ms && data.topic) changed(`topic ${data.topic}`);
    changed("running");
  },
  cleaner(data) {
    store.events.unshift(data);
    store.events.length = Math.min(store.events.length, EVENTS_KEPT);
    if (data.event === "round" && data.topic) {
      const rounds = store.rounds.get(data.topic) || [];
      rounds.push(data);
      store.rounds.set(data.topic, rounds.slice(-ROUNDS_KEPT));
    }
    if (data.topic) changed(`topic ${data.topic}`);
    changed("events");
  },
};

const waited = (ms) => new Promise((done) => setTimeout(done, ms));

// What a token shows that is not for all streams, again and again; ends when the gateway no longer answers.
async function look() {
  for (;;) {
    const [jobs] = await Promise.all([list("/jobs", 200), loadTopics()]);
    for (const job of jobs.reverse()) takes.job(job);
    await waited(LOOK_MS);
  }
}

// Follows the gateway for as long as the page is open, and comes back after every break.
export async function follow() {
  let [after, wait_ms] = [0, 250];
  for (;;) {
    let trouble = null;
    try {
      const known = store.gateway ? `?run=${store.gateway.run}&after=${after}` : "";
      await stream(`/events${known}`, (kind, data, number) => {
        after = kind === "hello" ? number : Math.max(after, number || 0);
        wait_ms = 250;
        setLive("live");
        takes[kind]?.(data, number);
      });
    } catch (error) {
      trouble = error;
    }
    if (trouble?.status === 401) return setLive("refused", trouble.message);
    if (trouble?.status === 403) {
      setLive("limited", trouble.message);
      trouble = await look().catch((error) => error);
    }
    setLive("lost", trouble?.status ? trouble.message : null);
    await waited(wait_ms);
    wait_ms = Math.min(2 * wait_ms, LONGEST_WAIT_MS);
  }
}
