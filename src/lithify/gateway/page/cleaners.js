// The cleaners and gateways of the catalog: what each works on, and what others have taken over from one that is silent.

import { errorText } from "./dialogs.js";
import { h, put, redraw } from "./dom.js";
import { fleet, isSilent, takenFrom } from "./fleet.js";
import { ago, duration, plural } from "./format.js";
import { now, store } from "./store.js";

const NAMED = 40;

const logName = (log) => [log.topic === null ? "a topic that is gone" : h("a", { href: `#/topics/${encodeURIComponent(log.topic)}` }, log.topic), ` ${log.partition}`];

function logs(all, item) {
  if (!all.length) return null;
  return h("ul", { class: "held-logs" }, all.slice(0, NAMED).map((log) => h("li", null, item(log))),
    all.length > NAMED ? h("li", null, `and ${all.length - NAMED} more`) : null);
}

function card(cleaner) {
  const silent = isSilent(cleaner);
  const taken = silent ? takenFrom(cleaner) : [];
  const held = `${silent ? "It has not given up" : "Works on"} ${plural(cleaner.logs.length, "log")}:`;
  return h("article", { class: `card cleaner${silent ? " stuck" : ""}` },
    h("h2", null, h("i", { class: `dot ${silent ? "bad" : "good"}` }), cleaner.cleaner, cleaner.cleaner === store.gateway?.gateway ? h("span", { class: "soft" }, " this gateway") : null),
    h("dl", { class: "numbers" }, [["Last look", ago(cleaner.looked_ms, now())], ["Every", duration(cleaner.interval_ms)], ["Running for", silent ? "–" : duration(now() - cleaner.started_ms)], ["Upkeep", cleaner.does_upkeep ? "by this one" : "–"]]
      .map(([what, value]) => h("div", null, h("dt", null, what), h("dd", null, value)))),
    silent ? h("p", { class: "error" }, "It has not looked for long: it may have died. The others take over what it held.") : null,
    taken.length ? [h("p", { class: "soft" }, `Taken over from it: ${plural(taken.length, "log")}`), logs(taken, (log) => [logName(log), ` by ${log.to}, ${ago(log.at_ms, now())}`])] : null,
    h("p", { class: "soft" }, cleaner.logs.length ? held : silent ? "It holds no log." : "Works on no log now."),
    logs(cleaner.logs, logName));
}

export function cleaners(root) {
  document.title = "Cleaners – Lithify";
  const all = h("div", { class: "cards wide" });
  put(root, h("h1", null, "Cleaners"), h("p", { class: "soft" }, "Cleaners and gateways on one catalog share its logs by leases: no log is compacted by two at once."), all);
  function draw() {
    if (fleet.error) redraw(all, errorText(fleet.error));
    else if (fleet.cleaners === null) redraw(all, h("p", { class: "soft" }, "Reading …"));
    else redraw(all, fleet.cleaners.length ? fleet.cleaners.map(card) : h("p", { class: "empty" }, "No cleaner is noted: they share no database, or none is running."));
  }
  draw();
  return { update(kinds) { if (kinds.has("fleet")) draw(); } };
}
