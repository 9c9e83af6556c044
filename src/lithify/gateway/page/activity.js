// What runs now, the jobs of this gateway, and what its cleaner has done.

import { ask, list } from "./api.js";
import { errorText } from "./dialogs.js";
import { h, notice, put, show } from "./dom.js";
import { ago, clockTime, duration, time } from "./format.js";
import { jobProgress, roundCard } from "./running.js";
import { now, store } from "./store.js";

const SHOWN = 200;
const BAD = ["failed", "quarantined", "trouble", "abandoned", "conflict"];

function jobRow(job) {
  const took = (job.ended_ms ?? now()) - job.begun_ms;
  const cancel = () => ask("DELETE", `/jobs/${job.job}`).then(() => notice("The job ends at its next step.")).catch((error) => notice(error.message, "bad"));
  return h("li", { class: `card job ${job.state}` },
    h("p", null, h("b", null, job.operation), job.topic ? [" of ", h("a", { href: `#/topics/${encodeURIComponent(job.topic)}` }, job.topic)] : null, " ", h("span", { class: `state ${job.state}` }, job.state),
      h("span", { class: "soft" }, `, ${ago(job.begun_ms, now())}, ${duration(took)}`)),
    job.ended_ms ? null : [jobProgress(job), h("button", { type: "button", class: "plain", onclick: cancel }, "Cancel")],
    job.error ? errorText(Object.assign(new Error(job.error.message), job.error)) : null);
}

function eventRow(event) {
  return h("li", { class: BAD.includes(event.event) ? "bad" : event.event === "round" ? "good" : "" },
    h("time", { title: time(event.time_ms) }, clockTime(event.time_ms)), h("span", { class: "kind" }, event.event),
    h("span", { class: "text" }, event.topic ? [h("a", { href: `#/topics/${encodeURIComponent(event.topic)}` }, event.topic), ": "] : null, event.text));
}

export function activity(root) {
  document.title = "Activity – Lithify";
  const running = h("div", { class: "cards" });
  const jobs = h("ul", { class: "cards plain-list" });
  const events = h("ol", { class: "events" });
  const only = h("input", { type: "checkbox", id: "only" });
  put(root, h("h1", null, "Activity"), h("h2", null, "Running now"), running, h("h2", null, "Jobs of this gateway"), jobs,
    h("h2", null, "What its cleaner did"), h("p", null, only, " ", h("label", { for: "only" }, "Only what failed")), events);

  function draw(kinds) {
    if (kinds.has("running") || kinds.has("restarted")) {
      const now_running = [...store.running.values()];
      show(running, now_running.length ? now_running.map(roundCard) : h("p", { class: "empty" }, "No round of the cleaner is running."));
      const known = [...store.jobs.values()].reverse().slice(0, SHOWN);
      show(jobs, known.length ? known.map(jobRow) : h("li", { class: "empty" }, "No jobs so far."));
    }
    if (kinds.has("events") || kinds.has("restarted")) {
      const shown = store.events.filter((event) => !only.checked || BAD.includes(event.event)).slice(0, SHOWN);
      show(events, shown.length ? shown.map(eventRow) : h("li", { class: "empty" }, "Nothing yet."));
    }
  }
  only.addEventListener("change", () => draw(new Set(["events"])));
  const ticking = setInterval(() => draw(new Set(["running"])), 1000);
  list("/jobs", 200).then((all) => {
    for (const job of all.reverse()) if (!store.jobs.has(job.job)) store.jobs.set(job.job, job);
    draw(new Set(["running"]));
  }).catch((error) => notice(error.message, "bad"));
  draw(new Set(["running", "events"]));
  return { update: draw, close() { clearInterval(ticking); } };
}

