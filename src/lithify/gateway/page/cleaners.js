// The cleaners and gateways of the catalog, and what each works on.

import { list } from "./api.js";
import { errorText } from "./dialogs.js";
import { h, put, show } from "./dom.js";
import { ago, duration, plural } from "./format.js";
import { now, store } from "./store.js";

const EVERY_MS = 2000;
const NAMED = 40;

function card(cleaner) {
  const late = cleaner.looked_ms !== null && now() - cleaner.looked_ms > 3 * cleaner.interval_ms + 30000;
  const logs = cleaner.logs.slice(0, NAMED).map((log) => h("li", null, log.topic === null ? "a topic that is gone" : h("a", { href: `#/topics/${encodeURIComponent(log.topic)}` }, log.topic), ` ${log.partition}`));
  return h("article", { class: `card cleaner${late ? " stuck" : ""}` },
    h("h3", null, h("i", { class: `dot ${late ? "bad" : "good"}` }), cleaner.cleaner, cleaner.cleaner === store.gateway?.gateway ? h("span", { class: "soft" }, " this gateway") : null),
    h("dl", { class: "numbers" }, [["Last look", ago(cleaner.looked_ms, now())], ["Every", duration(cleaner.interval_ms)], ["Running for", duration(now() - cleaner.started_ms)], ["Upkeep", cleaner.does_upkeep ? "by this one" : "–"]]
      .map(([what, value]) => h("div", null, h("dt", null, what), h("dd", null, value)))),
    late ? h("p", { class: "error" }, "It has not looked for long: it may have died. The others take over what it held.") : null,
    h("p", { class: "soft" }, cleaner.logs.length ? `Works on ${plural(cleaner.logs.length, "log")}:` : "Works on no log now."),
    logs.length ? h("ul", { class: "held-logs" }, logs, cleaner.logs.length > NAMED ? h("li", null, `and ${cleaner.logs.length - NAMED} more`) : null) : null);
}

export function cleaners(root) {
  document.title = "Cleaners – Lithify";
  const all = h("div", { class: "cards wide" });
  put(root, h("h1", null, "Cleaners"), h("p", { class: "soft" }, "Cleaners and gateways on one catalog share its logs by leases: no log is compacted by two at once."), all);
  let closed = false;
  async function load() {
    try {
      const known = await list("/cleaners");
      if (!closed) show(all, known.length ? known.map(card) : h("p", { class: "empty" }, "No cleaner is noted: they share no database, or none is running."));
    } catch (error) {
      if (!closed) show(all, errorText(error));
    }
    if (!closed) setTimeout(load, EVERY_MS);
  }
  load();
  return { close() { closed = true; } };
}
