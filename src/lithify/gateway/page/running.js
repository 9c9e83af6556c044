// What runs now: rounds of the cleaner and jobs, with their progress.

import { h } from "./dom.js";
import { fleet } from "./fleet.js";
import { count, duration, plural } from "./format.js";
import { now, store } from "./store.js";

const PHASES = { start_spark: "Spark starts", "": "begins" };

export const phaseText = (phase) => PHASES[phase] || (phase || "begins").replaceAll("_", " ");

export function bar(label, phase, done, total) {
  const known = total > 0;
  return h("div", { class: "progress" },
    h("progress", known ? { max: String(total), value: done, "aria-label": label } : { "aria-label": label }),
    h("span", null, phaseText(phase), known ? ` ${count(done)} of ${count(total)}` : " …"));
}

export function roundCard(round) {
  const named = round.topics.slice(0, 3).map((name, n) => [n ? ", " : "", h("a", { href: `#/topics/${encodeURIComponent(name)}` }, name)]);
  const rest = round.topics_in_all - Math.min(3, round.topics.length);
  return h("article", { class: "card run-card" },
    h("p", null, h("b", null, "Round"), " of ", named, rest > 0 ? ` and ${count(rest)} more` : null, h("span", { class: "soft" }, `, by the cleaner, for ${duration(now() - round.begun_ms)}`)),
    bar(`Round of ${round.topics[0]}`, round.phase, round.done, round.total));
}

export function jobProgress(job) {
  if (job.state === "queued") return h("div", { class: "progress" }, h("progress", { "aria-label": "waits" }), h("span", null, "waits for other jobs"));
  const { phase, done, total } = job.progress || { phase: "", done: 0, total: 0 };
  return bar(`${job.operation} of ${job.topic}`, phase, done, total);
}

// On the page of a topic: all that works on it, here and in other gateways.
export function progressOf(name) {
  const others = (fleet.cleaners || []).filter((cleaner) => cleaner.cleaner !== store.gateway?.gateway)
    .map((cleaner) => [cleaner.cleaner, cleaner.logs.filter((log) => log.topic === name).map((log) => log.partition)]).filter(([, logs]) => logs.length);
  const rounds = [...store.running.values()].filter((round) => round.topics.includes(name));
  const jobs = [...store.jobs.values()].filter((job) => job.topic === name && !job.ended_ms);
  return [...rounds.map((round) => h("div", { class: "card run-card" }, h("p", null, h("b", null, "A round of the cleaner is running"), h("span", { class: "soft" }, `, for ${duration(now() - round.begun_ms)}`)), bar("Round", round.phase, round.done, round.total))),
    ...jobs.map((job) => h("div", { class: "card run-card" }, h("p", null, h("b", null, `Job: ${job.operation}`), h("span", { class: "soft" }, `, for ${duration(now() - job.begun_ms)}`)), jobProgress(job))),
    ...others.map(([cleaner, logs]) => h("div", { class: "card run-card" }, h("p", null, h("b", null, cleaner), ` works on ${plural(logs.length, "log")} of it: partition ${logs.slice(0, 20).join(", ")}${logs.length > 20 ? " and more" : ""}.`)))];
}
