// Who reads the topics, and what copies them: consumer groups, replicas and ingests, with their lag.

import { list } from "./api.js";
import { errorText } from "./dialogs.js";
import { h, put, show, table } from "./dom.js";
import { ago, bytes, count, duration, plural } from "./format.js";
import { lagOf } from "./standing.js";
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

function stateOf(one) {
  const part = one.to_copy_bytes && ["copying", "replicating"].includes(one.state) ? ` ${Math.floor(100 * one.copied_bytes / one.to_copy_bytes)}%` : "";
  return h("span", { class: `state ${one.state}` }, one.state, part);
}

// What the figures of a replica do not say.
const notes = (one) => [one.error && one.error + (one.next_retry_at ? `; again ${ago(Date.parse(one.next_retry_at), now())}` : ""),
  one.positions_error && `Positions of groups: ${one.positions_error}`,
  one.positions_behind ? `${count(one.positions_behind)} of ${plural(one.positions, "committed position")} not as at the source` : null,
  one.not_compacting && `Does not compact by itself: ${one.not_compacting}`].filter(Boolean).join(". ");

function replicas(all) {
  if (!all.length) return h("p", { class: "empty" }, "There are no replicas.");
  const rows = all.map((one) => [one.name, link(one.topic), one.target, stateOf(one),
    one.replica_version === one.source_version ? count(one.source_version) : `${count(one.replica_version)} of ${count(one.source_version)}`,
    count(one.lag_records), bytes(one.lag_bytes), one.lag_ms ? duration(one.lag_ms) : "–", notes(one)]);
  return table("Replicas", ["Replica", "Topic", "Target", "State", "Version", "Lag", "Lag bytes", "Lag time", "Notes"], rows, [4, 5, 6, 7]);
}

// The lag is what a standing job has said of its copy last; a copy that is made otherwise tells none.
function copies([topics, jobs]) {
  const copied = topics.filter((topic) => topic.copy_of);
  if (!copied.length) return h("p", { class: "empty" }, "No topic is a copy of a topic of Kafka or Pulsar.");
  const rows = copied.map((topic) => {
    const job = jobs.find((one) => one.report?.topic === topic.topic);
    return [link(topic.topic), topic.copy_of, job ? [h("a", { href: "#/jobs" }, job.name), " ", h("span", { class: `state ${job.state}` }, job.state)] : "–",
      job ? count(lagOf(job)) : "–", count(topic.partitions), count(topic.records), bytes(topic.bytes)];
  });
  return table("Copies", ["Topic", "Copy of", "Standing job", "Lag", "Partitions", "Records", "Size"], rows, [3, 4, 5, 6]);
}

const read = {
  groups: () => list("/groups"),
  replicas: () => list("/replicas"),
  // Who may not see standing jobs sees the copies without their lag.
  copies: () => Promise.all([list("/topics"), list("/standing-jobs").catch(() => [])]),
};

const groups = (all) => all.length ? all.map(groupCard) : h("p", { class: "empty" }, "No group has committed a position.");

export function readers(root) {
  document.title = "Readers – Lithify";
  put(root, h("h1", null, "Readers and copies"));
  for (const [title, load, draw] of [["Consumer groups", read.groups, groups], ["Replicas", read.replicas, replicas], ["Ingests", read.copies, copies]]) {
    const place = h("div", { class: "cards" }, h("p", { class: "soft" }, "Reading …"));
    put(root, h("h2", null, title), place);
    load().then((all) => show(place, draw(all))).catch((error) => show(place, errorText(error)));
  }
  return {};
}
