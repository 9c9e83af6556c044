// Who reads the topics, and what copies them: consumer groups, replicas and ingests, with their lag.

import { list } from "./api.js";
import { errorText } from "./dialogs.js";
import { h, put, show, table } from "./dom.js";
import { ago, bytes, count, duration } from "./format.js";
import { now } from "./store.js";

const link = (topic) => topic ? h("a", { href: `#/topics/${encodeURIComponent(topic)}` }, topic) : "–";

function groupCard(group) {
  const lags = h("div");
  const box = h("details", { class: "card group" },
    h("summary", null, h("b", null, group.group), h("span", { class: "soft" }, ` ${group.topics.join(", ")} · ${group.partitions === 1 ? "1 log" : `${count(group.partitions)} logs`} · committed ${ago(Date.parse(group.committed_at), now())}`)), lags);
  box.addEventListener("toggle", async () => {
    if (!box.open) return;
    show(lags, h("p", { class: "soft" }, "Counting what is left …"));
    try {
      const rows = (await list(`/groups/${encodeURIComponent(group.group)}`, 2000)).map((lag) => [link(lag.topic), String(lag.partition), count(lag.position), count(lag.log_end_offset), count(lag.lag),
        lag.lag_ms ? duration(lag.lag_ms) : "–", lag.holds_tombstones ? "tombstones" : "–", lag.error || ""]);
      show(lags, table(`Lag of group ${group.group}`, ["Topic", "Partition", "Position", "Log end", "Lag", "Lag time", "Holds", "Error"], rows, [1, 2, 3, 4, 5]));
    } catch (error) {
      show(lags, errorText(error));
    }
  });
  return box;
}

function replicas(all) {
  if (!all.length) return h("p", { class: "empty" }, "There are no replicas.");
  const rows = all.map((one) => [one.name, link(one.topic), one.target, h("span", { class: `state ${one.state}` }, one.state), count(one.lag_records), bytes(one.lag_bytes), one.lag_ms ? duration(one.lag_ms) : "–", one.error || ""]);
  return table("Replicas", ["Replica", "Topic", "Target", "State", "Lag", "Lag bytes", "Lag time", "Error"], rows, [4, 5, 6]);
}

function copies(topics) {
  const copied = topics.filter((topic) => topic.copy_of);
  if (!copied.length) return h("p", { class: "empty" }, "No topic is a copy of a topic of Kafka.");
  return table("Copies", ["Topic", "Copy of", "Partitions", "Records", "Size"], copied.map((topic) => [link(topic.topic), topic.copy_of, count(topic.partitions), count(topic.records), bytes(topic.bytes)]), [2, 3, 4]);
}

export function readers(root) {
  document.title = "Readers – Lithify";
  const parts = [["Consumer groups", "/groups", (all) => all.length ? all.map(groupCard) : h("p", { class: "empty" }, "No group has committed a position.")], ["Replicas", "/replicas", replicas], ["Ingests", "/topics", copies]];
  put(root, h("h1", null, "Readers and copies"));
  for (const [title, path, draw] of parts) {
    const place = h("div", { class: "cards" }, h("p", { class: "soft" }, "Reading …"));
    put(root, h("h2", null, title), place);
    list(path).then((all) => show(place, draw(all))).catch((error) => show(place, errorText(error)));
  }
  return {};
}
