// One topic: its logs as drawings, rounds as charts, records, versions, settings; and what can be done with it.

import { get, list, topicPath } from "./api.js";
import { actionsOf } from "./actions.js";
import { roundCharts } from "./charts.js";
import { errorText } from "./dialogs.js";
import { h, put, show, table, visible } from "./dom.js";
import { ago, bytes, count, plural, time } from "./format.js";
import { drawing, legend, sentences } from "./logs.js";
import { badge, why } from "./overview.js";
import { recordsView } from "./records.js";
import { progressOf } from "./running.js";
import { now, store } from "./store.js";

const TABS = { logs: "Logs", rounds: "Rounds", records: "Records", versions: "Versions", settings: "Settings" };
const LOGS_DRAWN = 24;

export function topicView(root, [name, tab = "logs"]) {
  document.title = `${visible(name)} – Lithify`;
  const place = `#/topics/${encodeURIComponent(name)}`;
  const state = h("span");
  const reason = h("p", { class: "reason" });
  const numbers = h("dl", { class: "numbers" });
  const running = h("div", { class: "running-here", "aria-live": "polite" });
  const buttons = h("div", { class: "buttons", role: "group", "aria-label": "What can be done" });
  const tabs = h("nav", { class: "tabs", "aria-label": "Of this topic" });
  const content = h("section", { class: "content", "aria-label": `${TABS[tab] || "Logs"} of ${name}` });
  const [stream, last] = name.includes("/") ? name.split(/\/(.*)/s) : ["", name];
  put(root, h("div", { class: "head" },
    h("div", null, h("p", { class: "crumbs" }, h("a", { href: "#/topics" }, "Topics"), stream ? ` / ${stream}` : ""),
      h("h1", null, last, " ", state), reason), buttons), numbers, running, tabs, content);
  let known = { status: null, info: null };
  let part = null; // of the tab, if it has an `update`
  let asked = 0;
  let later = null;

  const actions = actionsOf(name, () => known, () => load());

  function frame() {
    const row = store.topics.get(name);
    show(state, row ? badge(row.state) : null);
    show(reason, row ? why(row) : "");
    reason.hidden = !row || row.state === "clean";
    show(buttons, actions.buttons());
    show(running, progressOf(name));
    show(tabs, Object.entries(TABS).map(([id, text]) => h("a", { href: id === "logs" ? place : `${place}/${id}`, "aria-current": id === tab ? "page" : null }, text)));
    const info = known.info;
    if (info) {
      const facts = [["Records", count(info.records)], ["Size", bytes(info.bytes)], ["Partitions", count(info.partitions)], ["Version", count(info.version)],
        ["Policy", info.config["cleanup.policy"] || "compact"], ["Mode", info.config["compaction.mode"] || "in-place"]];
      if (info.view_records !== null) facts.splice(2, 0, ["In the view", count(info.view_records)]);
      const space = info.space;
      if (space?.earlier_versions_bytes) facts.push(["Earlier versions", bytes(space.earlier_versions_bytes)]);
      if (info.source || info.copy_of) facts.push([info.source ? "Replica of" : "Copy of", info.source || info.copy_of]);
      show(numbers, facts.map(([what, value]) => h("div", null, h("dt", null, what), h("dd", null, value))));
    }
  }

  async function load() {
    const turn = ++asked;
    try {
      const [status, info] = await Promise.all([get(topicPath(name, "/status")), get(topicPath(name))]);
      if (turn !== asked) return;
      known = { status, info };
      frame();
      await showTab(turn);
    } catch (error) {
      if (turn === asked) show(content, errorText(error));
    }
  }

  async function showTab(turn) {
    if (tab === "records") {
      part ||= recordsView(content, name, known.info.partitions);
      return;
    }
    if (tab === "rounds") {
      const reports = await list(topicPath(name, "/rounds"), 100);
      if (turn === asked) roundCharts(content, reports, content.clientWidth);
    } else if (tab === "versions") {
      const versions = await list(topicPath(name, "/versions"), 200);
      if (turn === asked) showVersions(content, versions, known, actions);
    } else if (tab === "settings") showSettings(content, known.info);
    else {
      const layout = await get(topicPath(name, "/layout"));
      if (turn === asked) showLogs(content, layout, known.status, actions);
    }
  }

  let drawn = root.clientWidth;
  const resized = new ResizeObserver(() => {
    if (drawn !== root.clientWidth && (tab === "logs" || tab === "rounds")) soon(150);
    drawn = root.clientWidth;
  });
  let width = 0;
  const soon = (ms) => { clearTimeout(later); later = setTimeout(load, ms); };
  resized.observe(root);
  frame();
  load();
  return {
    update(kinds) {
      if (kinds.has(`topic ${name}`) || kinds.has("restarted")) soon(200);
      if (kinds.has("topics") || kinds.has("running") || kinds.has("fleet")) frame();
      if (kinds.has("topics") && store.topics.get(name) && store.topics.get(name).at_ms !== width) {
        width = store.topics.get(name).at_ms;
        soon(300);
      }
    },
    close() { resized.disconnect(); clearTimeout(later); asked += 1; },
  };
}

function showLogs(root, layout, status, actions) {
  const compacts = status.cleanup_policy.includes("compact");
  const states = new Map(status.logs.map((log) => [log.partition, log]));
  const before = document.activeElement?.closest?.(".one-log .visitable");
  const [focused, part] = [before?.closest(".one-log").dataset.partition, before?.dataset.at];
  const width = Math.max(280, root.clientWidth - 34);
  const cards = layout.logs.slice(0, LOGS_DRAWN).map((log) => {
    const of = states.get(log.partition);
    const { box, out } = drawing(log, of, width);
    const card = h("article", { class: `one-log card${of?.quarantined ? " stuck" : ""}`, "data-partition": log.partition },
      h("div", { class: "of-log" }, h("h3", null, `Partition ${log.partition}`, h("span", { class: "soft" }, ` ${plural(of?.records ?? 0, "record")}, ${bytes(of?.bytes)}, ${plural(log.segments, "segment")}, dirty ratio ${(of?.dirty_ratio ?? 0).toFixed(2)}`)), out),
      of?.error ? failure(of, actions) : null,
      box,
      h("ul", { class: "sentences" }, of ? sentences(of, compacts).map(([kind, text]) => h("li", { class: kind }, text)) : null));
    return card;
  });
  const more = layout.logs.length - LOGS_DRAWN;
  show(root, h("h2", { class: "unseen" }, "Logs"), legend(layout, status), status.groups_error ? h("p", { class: "error" }, status.groups_error) : null, cards,
    more > 0 ? h("details", null, h("summary", null, `${plural(more, "more partition")} as a table`), numbersOf(status.logs.slice(LOGS_DRAWN))) : null,
    h("details", null, h("summary", null, "The same in numbers"), numbersOf(status.logs)));
  const after = focused && root.querySelector(`.one-log[data-partition="${focused}"] .visitable`);
  after?.focus?.({ preventScroll: true });
  if (part) after?.dispatchEvent?.(new CustomEvent("go", { detail: Number(part) }));
}

function failure(log, actions) {
  const text = log.quarantined ? `Quarantined since ${time(log.failed_ms)} after ${plural(log.failures, "failure")}`
    : `Failed ${plural(log.failures, "time")}, next try ${ago(log.retry_ms, now())}`;
  return h("div", { class: "error" }, h("p", null, h("b", null, text)), h("p", null, log.error_code ? h("code", null, log.error_code) : null, " ", log.error), actions.releaseButton(log.partition));
}

const numbersOf = (logs) => table("Logs in numbers", ["Partition", "Start", "First dirty", "Horizon", "End", "Records", "Size", "Tombstones", "Segments", "Dirty"],
  logs.map((log) => [String(log.partition), count(log.log_start_offset), count(log.first_dirty_offset), count(log.horizon), count(log.log_end_offset),
    count(log.records), bytes(log.bytes), count(log.tombstones), count(log.segments), log.dirty_ratio.toFixed(2)]), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);

function showVersions(root, versions, known, actions) {
  const intro = h("p", { class: "soft" }, "A version is kept when a round or a cut has closed it. Verify reads everything and proves that nothing was lost since; undo goes back to before the last round.");
  if (!versions.length) return show(root, intro, h("p", { class: "empty" }, "No earlier version is kept."));
  const rows = versions.map((version) => [count(version.version), version.verb, time(version.closed_ms), ago(version.closed_ms, now()).replace(" ago", ""), count(version.records), bytes(version.bytes),
    time(version.files_stay_until_ms), actions.verifyButton(version.version)]);
  return show(root, h("h2", { class: "unseen" }, "Versions"), intro,
    table("Versions, newest first", ["Version", "Closed by", "At", "Ago", "Records", "Size", "Files stay until", "Verify"], rows, [0, 4, 5]), actions.undoButton());
}

function showSettings(root, info) {
  const rows = Object.entries(info.config).map(([name, value]) => [h("code", null, name), h("code", null, value === "" ? "(none)" : value), info.config_from[name] || ""]);
  show(root, h("h2", { class: "unseen" }, "Settings"),
    h("p", { class: "soft" }, `Table ${info.table} at ${info.location}, created ${time(info.created_ms)}.`),
    table("Settings", ["Setting", "Value", "From"], rows));
}
