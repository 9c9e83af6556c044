// Plan, compact, verify, release and undo: what will happen is shown first, then what happens, then what came of it.

import { ask, get, topicPath } from "./api.js";
import { dialog, errorText } from "./dialogs.js";
import { h, notice, table } from "./dom.js";
import { bytes, CAUSES, change, count, duration, plural, removed, sum, time } from "./format.js";
import { jobProgress } from "./running.js";
import { now, store, watch } from "./store.js";

const denied = new Set(); // actions, by stream, for which the token of this tab has no right

const total = (logs, name) => sum(logs, (log) => log[name]);
const waiting = (text) => h("p", { class: "soft", role: "status" }, text);

// Runs `work`; an error is shown in the dialog, and an action without a right to it is offered no more.
async function tried(box, right, work) {
  try {
    return await work();
  } catch (error) {
    if (error.status === 403) denied.add(right);
    box.tell(errorText(error));
    box.buttons(box.button("Close", box.close));
    return null;
  }
}

function planText(plan) {
  if (plan.logs.every((log) => log.idle)) return h("p", null, "A round would change nothing now.");
  const rows = plan.logs.map((log) => [String(log.partition), change(log.first_dirty_offset, log.horizon), count(log.records_in),
    `${count(log.segments_rewritten_at_most)} of ${count(log.segments_in)}`, log.segments_gone ? count(log.segments_gone) : "–",
    `≤ ${bytes(log.bytes_read_at_most)}`, `≤ ${bytes(log.bytes_written_at_most)}`,
    log.idle ? "nothing to do" : log.horizon_limited_by === "log end" ? "at the log end" : `held by ${log.horizon_limited_by}`]);
  return [h("p", null, "A round would read at most ", h("b", null, bytes(total(plan.logs, "bytes_read_at_most"))), " and write at most ",
    h("b", null, bytes(plan.extra_bytes_needed)), ", which must be free beside the old version."),
  table("The plan by log", ["Partition", "Clean below", "Records", "Segments rewritten", "Dropped", "Reads", "Writes", "Horizon"], rows, [0, 1, 2, 3, 4, 5, 6]),
  plan.old_version_until_ms ? h("p", { class: "soft" }, `Files of the old version remain at least until ${time(plan.old_version_until_ms)}.`) : null];
}

function roundText(report) {
  const logs = report.logs;
  const losers = Object.fromEntries(Object.keys(CAUSES).map((name) => [name, sum(logs, (log) => log.losers[name])]));
  if (!report.changed) return h("p", null, `There was nothing to do: still version ${count(report.version)}.`);
  const phases = Object.entries(logs[0]?.phases_ms || {}).map(([phase, ms]) => `${phase.replaceAll("_", " ")} ${duration(ms)}`).join(", ");
  return [h("dl", { class: "numbers" }, [
    ["Records", change(total(logs, "records_in"), total(logs, "records_out"))], ["Size", change(total(logs, "bytes_in"), total(logs, "bytes_out"), bytes)],
    ["Removed", removed(losers)], ["Time", duration(report.duration_ms)], ["Version", count(report.version)]].map(([what, value]) => h("div", null, h("dt", null, what), h("dd", null, value)))),
  phases ? h("p", { class: "soft" }, phases) : null, logs.filter((log) => log.error).map((log) => h("p", { class: "error" }, `Partition ${log.partition}: ${log.error}`))];
}

function verifyText(report) {
  const against = report.against === null ? "and no earlier one to compare with" : `against version ${count(report.against)}`;
  return [h("p", null, h("b", { class: report.clean ? "good" : "bad" }, report.clean ? "Clean: nothing was lost." : `Not clean: ${plural(report.findings.length, "finding")}${report.more_findings ? " and more" : ""}.`)),
    h("p", null, `${plural(report.records, "record")} in ${plural(report.segments, "segment")}, version ${count(report.version)} ${against}; ${bytes(report.bytes_read)} read in ${duration(report.duration_ms)}.`),
    report.findings.length ? h("ul", null, report.findings.slice(0, 50).map((one) => h("li", null, `Partition ${one.partition}${one.offset === null ? "" : `, offset ${count(one.offset)}`}: ${one.message}`))) : null];
}

// Follows a job in a dialog until it has ended; returns its report, or null.
function followed(box, begun, done) {
  return new Promise((ended) => {
    let finished = false;
    const cancel = box.button("Cancel the job", () => ask("DELETE", `/jobs/${begun.job}`).then(() => notice("The job ends at its next step.")).catch((error) => notice(error.message, "bad")));
    box.buttons(cancel, box.button("Close, it runs on", box.close));
    const draw = () => {
      const job = store.jobs.get(begun.job) || begun;
      if (!finished) box.tell(h("p", { class: "soft" }, `Begun ${time(job.begun_ms)}, for ${duration(now() - job.begun_ms)}.`), jobProgress(job));
    };
    const finish = async () => {
      let job;
      try {
        job = await get(`/jobs/${begun.job}`);
      } catch (error) {
        if (error.status !== 404) return; // it is asked again
        job = { state: "lost", error: { message: "The gateway was restarted and does not know the job any more.", hint: "What it had committed remains: the history of the topic says so." } };
      }
      if (finished) return;
      if (!job.ended_ms && job.state !== "lost") {
        store.jobs.set(job.job, job); // where no events tell of it
        return;
      }
      finished = true;
      clearInterval(ticking);
      stop();
      box.buttons(box.button("Close", box.close));
      box.title({ done: done.title, cancelled: "Cancelled", failed: "It failed", lost: "It is not known" }[job.state]);
      box.tell(job.report ? done.text(job.report) : null, job.error ? errorText(Object.assign(new Error(job.error.message), job.error)) : null);
      ended(job.report);
    };
    const stop = watch((kinds) => {
      if (kinds.has("running")) draw();
      if (store.jobs.get(begun.job)?.ended_ms || kinds.has("restarted")) finish();
    });
    const ticking = setInterval(() => { draw(); finish(); }, 2000);
    box.box.addEventListener("close", () => { stop(); clearInterval(ticking); ended(null); });
    draw();
    finish();
  });
}

export function actionsOf(name, known, changed) {
  const stream = name.includes("/") ? name.split("/")[0] : "";
  const right = (action) => `${stream}/${action}`;
  const button = (action, text, act, kind = "plain") => denied.has(right(action)) ? null : h("button", { type: "button", class: kind, onclick: act }, text);

  async function plan(runs) {
    const box = dialog(runs ? "Compact now?" : "Plan of a round", waiting("Reading the metadata …"));
    const told = await tried(box, right(runs ? "compact" : "plan"), () => get(topicPath(name, "/plan")));
    if (!told) return;
    box.tell(planText(told));
    const idle = told.logs.every((log) => log.idle);
    box.buttons(box.button(runs ? "Cancel" : "Close", box.close), idle || denied.has(right("compact")) ? null : box.button("Compact now", () => compact(box), "primary"));
  }
  async function compact(box) {
    box.title("Compaction");
    box.tell(waiting("Asking for it …"));
    const job = await tried(box, right("compact"), () => ask("POST", topicPath(name, "/rounds"), {}));
    if (job && await followed(box, job, { title: "Compacted", text: roundText })) changed();
  }
  async function verify(against) {
    const box = dialog("Verify", waiting("Asking for it …"));
    const job = await tried(box, right("verify"), () => ask("POST", topicPath(name, "/verifications"), against === undefined ? {} : { against }));
    if (job && await followed(box, job, { title: "Verified", text: verifyText })) changed();
  }
  function confirmVerify(against) {
    const box = dialog("Verify?", h("p", null, "All records of the topic are read on Spark, and compared with ", against === undefined ? "the latest version that is kept" : `version ${count(against)}`, ". Nothing is changed."));
    box.buttons(box.button("Cancel", box.close), box.button("Verify", () => { box.close(); verify(against); }, "primary"));
  }
  async function undo() {
    const box = dialog("Undo the last round?", waiting("Reading what it would do …"));
    const told = await tried(box, right("undo"), () => get(topicPath(name, "/undo")));
    if (!told) return;
    const rows = told.logs.map((log) => [String(log.partition), change(log.first_dirty_offset, log.first_dirty_offset_after), `−${count(log.segments_removed)} +${count(log.segments_added)}`,
      `${log.records_added >= log.records_removed ? "+" : "−"}${count(Math.abs(log.records_added - log.records_removed))}`]);
    box.tell(h("p", null, "The records that the round has removed are there again; records appended since remain."), table("What would change", ["Partition", "Clean below", "Segments", "Records"], rows, [0, 1, 2, 3]));
    box.buttons(box.button("Cancel", box.close), box.button("Undo the round", async () => {
      const done = await tried(box, right("undo"), () => ask("POST", topicPath(name, "/undo"), {}));
      if (!done) return;
      box.close();
      notice(`The last round of ${name} was undone: version ${count(done.version)}.`);
      changed();
    }, "danger"));
  }
  async function release(partition) {
    const failing = (known().status?.logs || []).filter((log) => log.failures && (partition === undefined || log.partition === partition));
    const box = dialog("Release?", h("p", null, `Cleaners try ${plural(failing.length, "log")} again at once. Look first whether the reason is gone:`),
      failing.map((log) => h("div", { class: "error" }, h("p", null, h("b", null, `Partition ${log.partition}, ${plural(log.failures, "failure")}`)), h("p", null, log.error))));
    box.buttons(box.button("Cancel", box.close), box.button("Release", async () => {
      const done = await tried(box, right("release"), () => ask("POST", topicPath(name, "/release"), partition === undefined ? {} : { partitions: [partition] }));
      if (!done) return;
      box.close();
      notice(`${plural(done.released.length, "log")} of ${name} released: it is tried again at once.`);
      changed();
    }, "primary"));
  }
  return {
    buttons() {
      const failing = (known().status?.logs || []).some((log) => log.failures);
      return [button("compact", "Compact …", () => plan(true), "primary"), button("plan", "Plan", () => plan(false)), button("verify", "Verify …", () => confirmVerify()),
        failing ? button("release", "Release …", () => release()) : null, button("undo", "Undo …", undo)];
    },
    releaseButton: (partition) => button("release", "Release …", () => release(partition)),
    verifyButton: (version) => button("verify", `Against ${count(version)}`, () => confirmVerify(version)),
    undoButton: () => button("undo", "Undo the last round …", undo, "danger"),
  };
}
