// Records of a topic: from an offset on or the latest, and all that is known of one key.

import { get, topicPath } from "./api.js";
import { errorText } from "./dialogs.js";
import { h, put, show } from "./dom.js";
import { ago, bytes, count, plural, time } from "./format.js";
import { now } from "./store.js";

const PREVIEW = 160;

function base64(text) {
  const raw = new TextEncoder().encode(text);
  return btoa(Array.from(raw, (byte) => String.fromCharCode(byte)).join(""));
}

function hex(shown) {
  const raw = atob(shown.base64);
  const lines = [];
  for (let at = 0; at < Math.min(raw.length, 4096); at += 16) {
    const part = Array.from(raw.slice(at, at + 16), (c) => c.charCodeAt(0));
    lines.push(`${at.toString(16).padStart(6, "0")}  ${part.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48)}  ${part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("")}`);
  }
  return lines.join("\n") + (raw.length > 4096 ? "\n…" : "");
}

// Text, JSON with indents, or hex; [kind, text].
function pretty(shown) {
  if (shown.text === null) return ["hex", hex(shown)];
  if (/^\s*[[{]/.test(shown.text)) {
    try {
      return ["JSON", JSON.stringify(JSON.parse(shown.text), null, 2)];
    } catch { /* it only looks like it */ }
  }
  return ["text", shown.text];
}

function brief(shown, none) {
  if (shown === null) return h("span", { class: "tombstone" }, none);
  const text = shown.text === null ? `0x${Array.from(atob(shown.base64.slice(0, 88)), (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("")}` : shown.text;
  return h("code", null, text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text || "(empty)");
}

function whole(record) {
  const parts = [];
  if (record.value !== null) {
    const [kind, text] = pretty(record.value);
    parts.push(h("p", { class: "soft" }, `Value, ${kind}, ${bytes(record.value.bytes)}${record.value.cut ? ", of which this is the beginning" : ""}`), h("pre", { tabindex: "0" }, text));
  } else parts.push(h("p", { class: "soft" }, "A null value: it deletes the key."));
  if (record.headers.length) {
    parts.push(h("p", { class: "soft" }, "Headers"), h("ul", { class: "headers" }, record.headers.map((one) => h("li", null, h("code", null, one.name), " = ", brief(one.value, "null")))));
  }
  return parts;
}

function item(record, lookUp) {
  return h("details", { class: "record" },
    h("summary", null, h("span", { class: "offset" }, count(record.offset)), h("span", { class: "key" }, brief(record.key, "no key")),
      h("span", { class: "value" }, brief(record.value, "tombstone")), h("time", { title: time(record.timestamp_ms) }, ago(record.timestamp_ms, now()))),
    h("div", { class: "whole" }, h("p", { class: "soft" }, `Partition ${record.partition}, offset ${count(record.offset)}, ${time(record.timestamp_ms)}${record.passed_through ? ", passed through whole" : ""}`),
      whole(record), lookUp && record.key ? h("button", { type: "button", class: "plain", onclick: () => lookUp(record.key) }, "All of this key") : null));
}

function keyCard(report) {
  const name = report.key.text === null ? "(binary)" : report.key.text;
  const from = Object.entries(report.read_from).map(([partition, offset]) => `${partition} from ${count(Number(offset))}`).join(", ");
  const versions = report.versions.map((one) => h("li", null, h("b", null, `Version ${count(one.version)}: `), one.record ? [brief(one.record.value, "tombstone"), h("span", { class: "soft" }, ` at offset ${count(one.record.offset)}`)] : h("span", { class: "tombstone" }, "not there")));
  return h("article", { class: "card key-card", "aria-label": `Key ${name}` },
    h("h3", null, "Key ", h("code", null, name)),
    report.latest ? [h("p", { class: "soft" }, `Latest: partition ${report.latest.partition}, offset ${count(report.latest.offset)}, ${time(report.latest.timestamp_ms)} (${ago(report.latest.timestamp_ms, now())})`), whole(report.latest)]
      : h("p", null, h("span", { class: "tombstone" }, "deleted, or never there")),
    h("h4", null, `Records that are left (${count(report.records.length)})`),
    h("p", { class: "soft" }, report.whole ? "All of the log was read. Superseded records that rounds have removed are gone." : `Read only the newest part: partition ${from}. Earlier ones may be there.`),
    h("ol", { class: "timeline" }, report.records.map((record) => h("li", null, item(record, null)))),
    versions.length ? [h("h4", null, "At the versions that are kept"), h("ul", { class: "versions" }, versions)] : null);
}

export function recordsView(root, name, partitions) {
  const partition = h("select", { id: "partition" }, Array.from({ length: partitions }, (_, n) => h("option", { value: String(n) }, String(n))));
  const offset = h("input", { id: "offset", type: "text", inputmode: "numeric", pattern: "[0-9]*", placeholder: "latest", autocomplete: "off" });
  const key = h("input", { id: "key", type: "search", placeholder: "a key, as text or 0x…", autocomplete: "off", spellcheck: "false" });
  const found = h("div", { "aria-live": "polite" });
  const listed = h("div", { class: "record-list" });
  const said = h("p", { class: "soft", role: "status" });

  async function browse(start) {
    show(said, "Reading …");
    try {
      const from = start === undefined ? "" : `&start=${start}`;
      const report = await get(topicPath(name, `/browse?partition=${partition.value}&limit=50${from}`));
      const records = start === undefined ? [...report.records].reverse() : report.records;
      show(said, records.length ? `${plural(records.length, "record")}${start === undefined ? ", the latest first" : ` from offset ${count(start)}`} of offsets ${count(report.log_start_offset)} to ${count(report.log_end_offset)}` : "No record is there.");
      show(listed, records.map((record) => item(record, lookUp)),
        report.next_offset !== null ? h("button", { type: "button", class: "plain", onclick: () => { offset.value = report.next_offset; browse(report.next_offset); } }, `Next, from ${count(report.next_offset)}`) : null);
    } catch (error) {
      show(said);
      show(listed, errorText(error));
    }
  }
  async function find(coded) {
    show(found, h("p", { class: "soft" }, "Looking for the key …"));
    try {
      show(found, keyCard(await get(topicPath(name, `/key?key=${encodeURIComponent(coded)}`))));
    } catch (error) {
      show(found, errorText(error));
    }
  }
  function lookUp(shown) {
    key.value = shown.text ?? `0x${Array.from(atob(shown.base64), (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("")}`;
    find(shown.text === null ? shown.base64 : base64(shown.text));
    found.scrollIntoView({ block: "nearest" });
  }
  const sought = (text) => /^0x([0-9a-f]{2})+$/i.test(text) ? btoa(text.slice(2).match(/../g).map((pair) => String.fromCharCode(parseInt(pair, 16))).join("")) : base64(text);
  show(root, h("h2", { class: "unseen" }, "Records"));
  put(root, h("div", { class: "ask" },
    h("form", { onsubmit: (event) => { event.preventDefault(); browse(offset.value.trim() === "" ? undefined : Number(offset.value.replaceAll(",", ""))); } },
      h("label", { for: "partition" }, "Partition"), partition, h("label", { for: "offset" }, "From offset"), offset, h("button", { type: "submit" }, "Show")),
    h("form", { onsubmit: (event) => { event.preventDefault(); if (key.value) find(sought(key.value)); else show(found); } },
      h("label", { for: "key" }, "Key"), key, h("button", { type: "submit" }, "Find"))), found, said, listed);
  partition.addEventListener("change", () => browse());
  browse();
  return {};
}
