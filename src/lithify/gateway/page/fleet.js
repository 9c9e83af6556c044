// The cleaners and gateways of the catalog, as they were last seen, and which has taken over from one that is silent.

import { list } from "./api.js";
import { changed, now } from "./store.js";

const EVERY_MS = 3000;
const LOGS_KEPT = 10000;
const TAKEN_KEPT = 100;

export const fleet = {
  cleaners: null, // null: not read yet
  error: null, // why they cannot be read
  taken: [], // {topic, partition, from, to, at_ms}, newest first
};

const workers = new Map(); // by log, who has worked on it last

// A cleaner that has ended in order is not listed any more.
export const isSilent = (cleaner) => now() - (cleaner.looked_ms ?? cleaner.started_ms) > 3 * cleaner.interval_ms + 30000;

function note(cleaners) {
  if (workers.size > LOGS_KEPT) workers.clear();
  for (const cleaner of cleaners) for (const { topic, partition } of cleaner.logs) {
    const log = `${topic} ${partition}`;
    const before = workers.get(log);
    if (before !== undefined && before !== cleaner.cleaner) fleet.taken.unshift({ topic, partition, from: before, to: cleaner.cleaner, at_ms: now() });
    workers.set(log, cleaner.cleaner);
  }
  fleet.taken.length = Math.min(fleet.taken.length, TAKEN_KEPT);
}

// The logs of a silent cleaner that others have worked on since.
export const takenFrom = (cleaner) => fleet.taken.filter((one) => one.from === cleaner.cleaner && one.at_ms > (cleaner.looked_ms ?? cleaner.started_ms));

// Looks while the page is in sight; ends where a token has no right to it.
export async function keepWatch() {
  for (;;) {
    if (!document.hidden) {
      try {
        fleet.cleaners = await list("/cleaners");
        fleet.error = null;
        note(fleet.cleaners);
      } catch (error) {
        fleet.error = error;
      }
      changed("fleet");
      if ([401, 403].includes(fleet.error?.status)) return;
    }
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}
