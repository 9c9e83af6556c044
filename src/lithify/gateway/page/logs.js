// A log as a drawing along its offsets, to scale.
//
//   ▏▏ ▏          tombstones, by the round that covered them first
//   ████▆▆░░░▒▒   segments: clean, dirty, above the horizon; how full each is with records; what masks hide
//   ▄▄▄▄▄▄        the compacted view, side by side
//   S    D   H E  the points of the log, and where groups are that hold tombstones

import { h, s, visitable } from "./dom.js";
import { ago, bytes, count, duration, horizon, plural, time } from "./format.js";
import { now } from "./store.js";

const LEFT = 10;
const TRACK = { top: 34, height: 46 };
const VIEW = { top: 88, height: 16 };
const PARTS = { clean: "clean", dirty: "dirty", waiting: "above the horizon" };

// The square root, so that one record in a hundred offsets can be seen.
const density = (run) => Math.sqrt(Math.min(1, (run.records + run.masked_records) / Math.max(1, run.end_offset - run.base_offset)));

function runText(run, view) {
  const what = run.segments === 1 ? "1 segment" : `${count(run.segments)} segments`;
  const gone = run.end_offset - run.base_offset - run.records - run.masked_records;
  return [`${view ? "compacted view, " : ""}${PARTS[run.part]}: ${what}, offsets ${count(run.base_offset)} to ${count(run.end_offset - 1)}`,
    `${plural(run.records, "record")}, ${bytes(run.bytes)}`,
    run.tombstones ? plural(run.tombstones, "tombstone") : null,
    run.masked_records ? `${count(run.masked_records)} hidden by masks` : null,
    gone > 0 ? `${count(gone)} offsets without a record` : null].filter(Boolean).join(" · ");
}

function block(run, x, track, view, n) {
  const [left, width] = [x(run.base_offset), Math.max(1.2, x(run.end_offset) - x(run.base_offset) - 0.8)];
  const full = track.height * Math.max(0.06, density(run));
  const masked = run.masked_records ? full * run.masked_records / (run.records + run.masked_records) : 0;
  return s("g", { class: `run ${run.part}${view ? " of-view" : ""}`, "data-n": n },
    s("rect", { class: "ground", x: left, y: track.top, width, height: track.height, rx: Math.min(2, width / 2) }),
    s("rect", { class: "fill", x: left, y: track.top + track.height - full, width, height: full, rx: Math.min(2, width / 2) }),
    masked ? s("rect", { class: "masked", x: left, y: track.top + track.height - full, width, height: Math.max(1.5, masked) }) : null);
}

// Puts labels side by side where they fit, else one row lower.
function labels(points, width, top) {
  const ends = [-1e9, -1e9, -1e9, -1e9];
  const stems = [];
  const texts = [];
  let rows = 0;
  for (const point of [...points].sort((a, b) => a.at - b.at)) {
    const length = point.text.length * 6.9;
    const left = Math.max(LEFT, Math.min(width - LEFT - length, point.at - length / 2));
    const row = Math.max(0, ends.findIndex((end) => end < left));
    ends[row] = left + length + 12;
    rows = Math.max(rows, row + 1);
    const y = top + 16 + 16 * row;
    stems.push(s("line", { class: `stem ${point.kind}`, x1: point.at, x2: point.at, y1: point.from, y2: y - 10 }));
    texts.push(s("text", { class: `label ${point.kind}`, x: left, y }, point.text));
  }
  return { drawn: [...stems, ...texts], height: 16 * rows + 6 };
}

function points(log, status) {
  const offsets = new Map();
  const add = (at, name) => offsets.set(at, [...(offsets.get(at) || []), name]);
  add(log.log_start_offset, "start");
  if (status && status.delete_retention_point > log.log_start_offset) add(status.delete_retention_point, "deletes may be gone");
  add(log.first_dirty_offset, "first dirty");
  if (log.horizon !== log.log_end_offset) add(log.horizon, "horizon");
  add(log.log_end_offset, "end");
  return [...offsets].map(([offset, names]) => ({ offset, text: `${names.join(" = ")} ${count(offset)}`, kind: "point" }));
}

export function drawing(log, status, width) {
  const span = Math.max(1, log.log_end_offset - log.log_start_offset);
  const x = (offset) => LEFT + (width - 2 * LEFT) * (offset - log.log_start_offset) / span;
  const hasView = log.view.length > 0;
  const bottom = (hasView ? VIEW.top + VIEW.height : TRACK.top + TRACK.height) + 4;
  const most = Math.max(1, ...log.steps.map((step) => step.tombstones));
  let from = log.log_start_offset;
  const steps = log.steps.map((step) => {
    const [left, right] = [x(Math.max(from, log.log_start_offset)), x(step.end_offset)];
    from = step.end_offset;
    const height = 4 + 14 * step.tombstones / most;
    return s("rect", { class: `tombstones${step.expires_ms && step.expires_ms < now() ? " over" : ""}`, x: left, y: 30 - height, width: Math.max(1.5, right - left - 1), height, rx: 1.5 });
  });
  const places = new Map();
  for (const hold of status?.holds || []) {
    const key = `${hold.position ?? log.log_start_offset} ${hold.tombstones ? "holds" : ""}`;
    places.set(key, [...(places.get(key) || []), hold.group]);
  }
  const groups = [...places].map(([key, names]) => ({ at: x(Number(key.split(" ")[0])), text: `▲ ${names.join(", ")}`, kind: `group ${key.split(" ")[1]}`, from: TRACK.top + TRACK.height }));
  const marks = [...points(log, status).map((point) => ({ ...point, at: x(point.offset), from: TRACK.top })), ...groups];
  const below = labels(marks, width, bottom);
  const all = [...log.runs, ...log.view];
  const height = bottom + below.height;
  const art = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true", class: "log" },
    s("defs", null, s("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 5 }))),
    s("rect", { class: "nothing", x: LEFT, y: TRACK.top, width: width - 2 * LEFT, height: TRACK.height, rx: 3 }),
    steps, log.runs.map((run, n) => block(run, x, TRACK, false, n)), log.view.map((run, n) => block(run, x, VIEW, true, log.runs.length + n)), below.drawn);
  const names = log.runs.length ? `Segments of partition ${log.partition}` : `Partition ${log.partition} has no segments`;
  const { box, out } = visitable(names, art, all.length, (n) => runText(all[n], n >= log.runs.length),
    (event) => Number(event.target.closest?.("[data-n]")?.getAttribute("data-n") ?? -1));
  box.addEventListener("visit", (event) => {
    for (const run of art.querySelectorAll(".run.here")) run.classList.remove("here");
    art.querySelector(`.run[data-n="${event.detail}"]`)?.classList.add("here");
  });
  return { box, out };
}

export function legend(layout, status) {
  const logs = layout.logs;
  const any = (test) => logs.some(test);
  const item = (kind, text) => h("li", null, h("i", { class: `key ${kind}` }), text);
  return h("ul", { class: "legend" },
    item("clean", "clean"), item("dirty", "dirty"),
    any((log) => log.runs.some((run) => run.part === "waiting")) ? item("waiting", "not compactable yet") : null,
    any((log) => log.steps.length) ? item("tombstones", "tombstones") : null,
    any((log) => log.runs.some((run) => run.masked_records)) ? item("masked", "hidden by masks") : null,
    any((log) => log.view.length) ? item("view", "compacted view") : null,
    status?.logs.some((log) => log.holds.length) ? item("group", "position of a group") : null,
    h("li", { class: "soft" }, "Offsets to scale; the higher a segment is filled, the more of its offsets have a record."));
}

// What the drawing cannot say, in sentences.
export function sentences(status, compacts) {
  const texts = [];
  const at = now();
  if (status.due || status.overdue_ms) texts.push(["due", `Due: ${status.due_reason}${status.overdue_ms ? `, ${duration(status.overdue_ms)} overdue` : ""}.`]);
  else texts.push(["", `Not due: ${status.due_reason}${status.due_at_ms ? `; due by the clock ${ago(status.due_at_ms, at)}` : ""}.`]);
  if (!compacts) return texts;
  texts.push([status.horizon_limited_by === "log end" ? "" : "held", horizon(status)]);
  if (status.tombstones) {
    const expiry = status.next_tombstone_expiry_ms;
    const held = status.tombstones_held_below !== null ? ` Expired ones below ${count(status.tombstones_held_below)} remain for records above the horizon.` : "";
    texts.push(["", `${plural(status.tombstones, "tombstone")} at most${expiry ? `; the next expires ${ago(expiry, at)} (${time(expiry)})` : ""}.${held}`]);
  }
  for (const hold of status.holds) {
    const place = hold.position === null ? "has no committed position here" : `is at ${count(hold.position)}`;
    if (hold.since_ms !== null) {
      const until = hold.until_ms === null ? "" : `, until ${time(hold.until_ms)} at the latest`;
      texts.push(["held", `Group ${hold.group} ${place} and holds ${plural(hold.tombstones, "tombstone")} at most since ${time(hold.since_ms)}${until}.`]);
    } else texts.push(["", `Group ${hold.group} ${place}; it holds no expired tombstone.`]);
    if (hold.missed_below !== null) texts.push(["bad", `Group ${hold.group} has missed deletes below ${count(hold.missed_below)}.`]);
  }
  if (status.masked_records) texts.push(["", `${plural(status.masked_records, "dead record")} hidden by masks.`]);
  if (status.owed && status.owed !== status.due_reason) texts.push(["due", `A round is required: ${status.owed}.`]);
  if (status.view) texts.push(["", `Compacted view: ${plural(status.view.records, "record")}, ${bytes(status.view.bytes)}, read from ${count(status.view.start_offset)}.`]);
  texts.push(["", status.last_round_ms === null ? "No round yet." : `Last round ${ago(status.last_round_ms, at)}.`]);
  return texts;
}
