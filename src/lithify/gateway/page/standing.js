// Standing jobs: command lines that gateways run, and take over from each other.

import { ask, list } from "./api.js";
import { dialog, errorText } from "./dialogs.js";
import { h, notice, put, redraw } from "./dom.js";
import { ago, count, duration } from "./format.js";
import { now } from "./store.js";

const EVERY_MS = 3000;
const MEANINGS = { running: "a gateway runs it", waiting: "the next run is not due yet, or no gateway has begun it", failing: "the last run failed; it is tried again", paused: "not run until it is resumed" };

const when = (text) => text === null ? "–" : ago(Date.parse(text), now());

function facts(job) {
  const all = [["Gateway", job.gateway || "none yet"], [job.state === "running" ? "Began" : "Ended", when(job.since)],
    ["Runs", job.every_ms === null ? "all the time" : `${duration(job.every_ms)} after each end`]];
  if (job.next_at !== null && !job.paused) all.push(["Next run", when(job.next_at)]);
  if (job.exit_code !== null) all.push(["Last exit", String(job.exit_code)]);
  if (job.failures) all.push(["Failures in a row", count(job.failures)]);
  if (lagOf(job) !== null) all.push(["Lag", count(lagOf(job))]);
  return h("dl", { class: "numbers" }, all.map(([what, value]) => h("div", null, h("dt", null, what), h("dd", null, value))));
}

// Of the copy that a job makes, as its last output said.
export const lagOf = (job) => job.report?.lag ?? null;

function confirm(job, verb, changed) {
  const [title, text] = job.paused ? ["Resume", "A gateway begins it within seconds."] : ["Pause", "Its process ends, and no gateway begins it until it is resumed."];
  const box = dialog(`${title} ${job.name}?`, h("p", null, h("code", null, `lithify ${job.command}`)), h("p", null, text));
  box.buttons(box.button("Cancel", box.close), box.button(title, async () => {
    try {
      await ask("POST", `/standing-jobs/${encodeURIComponent(job.name)}/${verb}`, {});
    } catch (error) {
      box.tell(errorText(error));
      return box.buttons(box.button("Close", box.close));
    }
    box.close();
    notice(`${job.name} is ${job.paused ? "resumed" : "paused"}.`);
    return changed();
  }, "primary"));
}

function card(job, changed) {
  const verb = job.paused ? "resume" : "pause";
  return h("article", { class: "card standing", "aria-label": job.name },
    h("div", { class: "of-log" }, h("h2", null, job.name, " ", h("span", { class: `state ${job.state}`, title: MEANINGS[job.state] }, job.state)),
      h("button", { type: "button", class: "plain", "data-key": `${verb} ${job.name}`, onclick: () => confirm(job, verb, changed) }, job.paused ? "Resume …" : "Pause …")),
    h("p", null, h("code", null, `lithify ${job.command}`)), facts(job),
    job.error && (job.failures || job.exit_code) ? errorText({ code: job.error_code, message: `${job.state === "running" ? "last error: " : ""}${job.error}` }) : null,
    job.report?.text ? h("p", { class: "soft" }, job.report.text) : null);
}

export function standingJobs(root) {
  document.title = "Standing jobs – Lithify";
  const all = h("div", { class: "cards wide" }, h("p", { class: "soft" }, "Reading …"));
  put(root, h("h1", null, "Standing jobs"), h("p", { class: "soft" }, "What gateways run all the time, or again and again: ingests, replicas, publishing, hydration. Each runs in one gateway; another takes it over if that ends."), all);
  let closed = false;
  let later = null;
  async function load() {
    clearTimeout(later);
    try {
      const jobs = await list("/standing-jobs");
      if (!closed) redraw(all, jobs.length ? jobs.map((job) => card(job, load)) : h("p", { class: "empty" }, "There are none. ", h("code", null, "lithify gateway job add"), " adds one."));
    } catch (error) {
      if (!closed) redraw(all, errorText(error));
      if (error.status === 403) return;
    }
    if (!closed) later = setTimeout(load, EVERY_MS);
  }
  load();
  return { close() { closed = true; clearTimeout(later); } };
}
