// The history of a topic's rounds: bytes in and out, time by phase, removed records by cause.

import { h, s, show, table, visitable } from "./dom.js";
import { ago, bytes, CAUSES, change, count, duration, plural, removed, sum, time } from "./format.js";
import { now } from "./store.js";

const HEIGHT = 120;
const SHOWN = 40;

function totals(report) {
  const logs = report.logs;
  const phases = {};
  for (const log of logs) for (const [phase, ms] of Object.entries(log.phases_ms)) phases[phase] = Math.max(phases[phase] || 0, ms);
  const losers = Object.fromEntries(Object.keys(CAUSES).map((name) => [name, sum(logs, (log) => log.losers[name])]));
  return {
    report, phases, losers,
    bytes_in: sum(logs, (log) => log.bytes_in), bytes_out: sum(logs, (log) => log.bytes_out),
    read: sum(logs, (log) => log.bytes_read), written: sum(logs, (log) => log.bytes_written),
    records_in: sum(logs, (log) => log.records_in), records_out: sum(logs, (log) => log.records_out),
  };
}

function roundText(one) {
  const spent = Object.entries(one.phases).map(([phase, ms]) => `${phase.replaceAll("_", " ")} ${duration(ms)}`).join(", ");
  return `${time(one.report.now_ms)} · ${change(one.records_in, one.records_out)} records · ${change(one.bytes_in, one.bytes_out, bytes)}`
    + ` · removed ${removed(one.losers)} · ${duration(one.report.duration_ms)}${spent ? ` (${spent})` : ""}`;
}

// One bar per round; `parts` are stacked from below: [[class, value], ...].
function bars(title, unit, rounds, parts, width) {
  const most = Math.max(1, ...rounds.map((one) => sum(parts(one), (part) => part[1])));
  const step = Math.min(34, (width - 8) / Math.max(1, rounds.length));
  const drawn = rounds.map((one, n) => {
    let y = HEIGHT;
    const stack = parts(one).filter((part) => part[1] > 0).map(([kind, value]) => {
      const height = Math.max(1, (HEIGHT - 8) * value / most);
      y -= height;
      return s("rect", { class: kind, x: 4 + n * step, y, width: Math.max(2, step - Math.min(5, step / 4)), height: Math.max(0.8, height - 0.6), rx: 1 });
    });
    return s("g", { class: "round", "data-n": n }, s("rect", { class: "reach", x: 4 + n * step - 1, y: 0, width: step, height: HEIGHT }), stack);
  });
  return h("figure", null, h("figcaption", null, title, h("span", { class: "soft" }, ` up to ${unit(most)}`)),
    s("svg", { viewBox: `0 0 ${width} ${HEIGHT + 1}`, width, height: HEIGHT + 1, "aria-hidden": "true", class: "bars" },
      s("line", { class: "base", x1: 0, x2: width, y1: HEIGHT + 0.5, y2: HEIGHT + 0.5 }), drawn));
}

const keys = (items) => h("ul", { class: "legend" }, items.map(([kind, text]) => h("li", null, h("i", { class: `key ${kind}` }), text)));

export function roundCharts(root, reports, width) {
  const rounds = reports.slice(0, SHOWN).reverse().map(totals);
  if (!rounds.length) return show(root, h("p", { class: "empty" }, "No round was committed yet."));
  const phases = [...new Set(rounds.flatMap((one) => Object.keys(one.phases)))];
  const causes = Object.keys(CAUSES).filter((name) => rounds.some((one) => one.losers[name]));
  const each = width > 900 ? Math.floor((width - 48) / 3) : width;
  const charts = h("div", { class: "charts" },
    h("div", null, bars("Size before and after", bytes, rounds, (one) => [["out", one.bytes_out], ["gone", Math.max(0, one.bytes_in - one.bytes_out)]], each),
      keys([["out", "left"], ["gone", "removed"]])),
    h("div", null, bars("Time by phase", duration, rounds, (one) => phases.map((phase, n) => [`phase-${n % 6}`, one.phases[phase] || 0]), each),
      keys(phases.map((phase, n) => [`phase-${n % 6}`, phase.replaceAll("_", " ")]))),
    h("div", null, bars("Records removed by cause", count, rounds, (one) => causes.map((name) => [`cause-${name}`, one.losers[name]]), each),
      keys(causes.map((name) => [`cause-${name}`, CAUSES[name]]))));
  const { box, out } = visitable(`The last ${plural(rounds.length, "round")}, oldest first`, charts, rounds.length, (n) => roundText(rounds[n]),
    (event) => Number(event.target.closest?.("[data-n]")?.getAttribute("data-n") ?? -1));
  box.addEventListener("visit", (event) => {
    for (const one of charts.querySelectorAll(".round")) one.classList.toggle("here", one.getAttribute("data-n") === String(event.detail));
  });
  const rows = [...rounds].reverse().map((one) => [
    h("time", { title: one.report.run_id }, `${time(one.report.now_ms)}${one.report.now_given ? "*" : ""}`), ago(one.report.now_ms, now()).replace(" ago", ""), count(one.report.version), change(one.records_in, one.records_out),
    change(one.bytes_in, one.bytes_out, bytes), bytes(one.read), bytes(one.written), duration(one.report.duration_ms), removed(one.losers),
  ]);
  return show(root, box, out, h("h2", null, "All of them"),
    table("Rounds, newest first", ["Round at", "Ago", "Version", "Records", "Size", "Read", "Wrote", "Time", "Removed"], rows, [2, 3, 4, 5, 6, 7]));
}
