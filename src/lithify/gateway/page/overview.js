// All topics, the worst first: counts by state, search, sort; only the rows in sight are in the document.

import { h, put, s, show } from "./dom.js";
import { ago, bytes, count, duration, plural, ratio, sum } from "./format.js";
import { now, store } from "./store.js";

export const STATES = ["unreadable", "quarantined", "overdue", "failing", "due", "waiting", "clean"];
const MEANINGS = {
  unreadable: "cannot be read", quarantined: "rounds failed too often; skipped until released", overdue: "past max.compaction.lag.ms",
  failing: "the last round failed; tried again", due: "a round is due", waiting: "dirty, not due yet", clean: "nothing to do",
};
const AROUND = 12; // rows beyond the edge of the window

const lagOf = (topic) => topic.overdue_ms ? topic.overdue_ms + (now() - topic.at_ms)
  : topic.due_at_ms && topic.state !== "clean" ? now() - topic.due_at_ms : null;

const COLUMNS = [
  { name: "state", text: "State", value: (t) => -STATES.indexOf(t.state), first: -1 },
  { name: "topic", text: "Topic", value: (t) => t.topic, first: 1 },
  { name: "why", text: "Why", value: null },
  { name: "lag", text: "Lag", value: (t) => lagOf(t) ?? -Infinity, first: -1, number: true },
  { name: "dirty", text: "Dirty", value: (t) => t.dirty_ratio ?? -1, first: -1 },
  { name: "records", text: "Records", value: (t) => t.records ?? -1, first: -1, number: true },
  { name: "bytes", text: "Size", value: (t) => t.bytes ?? -1, first: -1, number: true },
  { name: "rounds", text: "Rounds", value: (t) => store.rounds.get(t.topic)?.at(-1)?.time_ms ?? 0, first: -1 },
];

const kept = { search: "", states: new Set(), sort: "state", way: -1 };
const ORDER = new Intl.Collator("en", { numeric: true });

export const badge = (state) => h("span", { class: `badge ${state}`, title: MEANINGS[state] }, state);

export function why(topic) {
  if (topic.error) return `${topic.failures ? `failed ${plural(topic.failures, "time")}: ` : ""}${topic.error}`;
  const where = topic.logs > 1 && topic.state !== "clean" && topic.state !== "waiting" ? `partition ${topic.partition}: ` : "";
  return where + (topic.why || "");
}

const rough = (ms) => duration(ms > 600000 ? ms - (ms % 60000) : ms);

function lagText(topic) {
  const lag = lagOf(topic);
  if (lag === null) return "";
  return topic.overdue_ms ? `${rough(lag)} late` : lag < 0 ? `in ${rough(-lag)}` : "now";
}

export function meter(value) {
  if (value === null || value === undefined) return h("span", { class: "soft" }, "–");
  const level = value > 0.75 ? "high" : value > 0.5 ? "more" : "low";
  return h("span", { class: "meter", title: `${ratio(value)} of the compactable bytes are dirty` },
    h("span", { class: "track", "aria-hidden": "true" }, h("i", { class: level, css: { width: `${Math.round(100 * value)}%` } })), ratio(value));
}

export function sparkline(rounds = []) {
  if (!rounds.length) return h("span", { class: "soft", "aria-label": "no rounds seen" }, "–");
  const most = Math.max(...rounds.map((round) => round.removed), 1);
  const bars = rounds.slice(-16).map((round, n) => {
    const height = round.removed ? 3 + 15 * Math.log1p(round.removed) / Math.log1p(most) : 1.5;
    return s("rect", { x: 5 * n, y: 18 - height, width: 3.5, height, rx: 1, class: round.changed ? "bar-on" : "bar-off" });
  });
  const text = `${plural(rounds.length, "round")} seen, the last ${ago(rounds.at(-1).time_ms, now())}, which removed ${plural(rounds.at(-1).removed, "record")}`;
  return h("span", { class: "spark", title: text, role: "img", "aria-label": text }, s("svg", { viewBox: "0 0 80 18", width: 80, height: 18, "aria-hidden": "true" }, bars));
}

function row(topic, index) {
  const place = `#/topics/${encodeURIComponent(topic.topic)}`;
  const [stream, name] = topic.topic.includes("/") ? topic.topic.split(/\/(.*)/s) : ["", topic.topic];
  const cells = [
    badge(topic.state),
    h("a", { href: place }, stream ? h("span", { class: "stream" }, `${stream}/`) : null, name),
    h("span", { class: "why", title: why(topic) }, why(topic)),
    lagText(topic), meter(topic.dirty_ratio), count(topic.records), bytes(topic.bytes), sparkline(store.rounds.get(topic.topic)),
  ];
  return h("tr", { role: "row", class: topic.state, "aria-rowindex": index + 2 },
    COLUMNS.map((column, n) => h("td", { role: "cell", class: `${column.name}${column.number ? " number" : ""}` }, cells[n])));
}

function tiles(select) {
  const numbers = Object.fromEntries(STATES.map((state) => [state, 0]));
  for (const topic of store.topics.values()) numbers[topic.state] += 1;
  return STATES.filter((state) => numbers[state] || kept.states.has(state)).map((state) => h("button", {
    type: "button", class: `tile ${state}`, "aria-pressed": String(kept.states.has(state)), title: MEANINGS[state], onclick: () => select(state),
  }, h("b", null, count(numbers[state])), " ", h("span", null, state)));
}

function proportions() {
  const all = store.topics.size || 1;
  const numbers = STATES.map((state) => [state, [...store.topics.values()].filter((t) => t.state === state).length]);
  return numbers.filter(([, n]) => n).map(([state, n]) => h("i", { class: state, css: { "flex-grow": String(Math.max(n, all / 150)) } }));
}

function chosen() {
  const words = kept.search.toLowerCase().split(/\s+/).filter(Boolean);
  const column = COLUMNS.find((one) => one.name === kept.sort);
  const fits = (t) => (!kept.states.size || kept.states.has(t.state)) &&
    words.every((word) => t.topic.toLowerCase().includes(word) || (t.error || t.why || "").toLowerCase().includes(word));
  const values = [...store.topics.values()].filter(fits).map((t) => [column.value(t), t]);
  const order = (a, b) => typeof a === "string" ? ORDER.compare(a, b) : a < b ? -1 : a > b ? 1 : 0;
  values.sort((a, b) => kept.way * order(a[0], b[0]) || (lagOf(b[1]) ?? -1e15) - (lagOf(a[1]) ?? -1e15) || ORDER.compare(a[1].topic, b[1].topic));
  return values.map((one) => one[1]);
}

export function overview(root) {
  document.title = "Topics – Lithify";
  const bar = h("div", { class: "proportions", "aria-hidden": "true" });
  const states = h("div", { class: "tiles", role: "group", "aria-label": "Show only these states" });
  const totals = h("p", { class: "soft totals", role: "status" });
  const search = h("input", { id: "search", type: "search", placeholder: "Search by name or reason", "aria-label": "Search the topics", value: kept.search, autocomplete: "off", spellcheck: "false" });
  const heads = COLUMNS.map((column) => h("th", { scope: "col", role: "columnheader", class: `${column.name}${column.number ? " number" : ""}` },
    column.value ? h("button", { type: "button", onclick: () => sortBy(column) }, column.text, h("i", { "aria-hidden": "true" })) : column.text));
  const [above, below] = [h("tr", { class: "space", "aria-hidden": "true" }), h("tr", { class: "space", "aria-hidden": "true" })];
  const body = h("tbody", { role: "rowgroup" });
  const grid = h("table", { class: "topics", role: "table", "aria-label": "Topics" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads)), body);
  const empty = h("p", { class: "empty", hidden: true });
  put(root, h("h1", { class: "unseen" }, "Topics"), bar, h("div", { class: "tools" }, states, search), totals, grid, empty);
  let rows = [];
  let shown = "";

  function sortBy(column) {
    kept.way = kept.sort === column.name ? -kept.way : column.first;
    kept.sort = column.name;
    update();
  }
  function draw(force = false) {
    const height = matchMedia("(max-width: 700px)").matches ? 84 : 46;
    const top = grid.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(-top / height) - AROUND);
    const to = Math.min(rows.length, from + Math.ceil(innerHeight / height) + 2 * AROUND);
    if (!force && shown === `${from} ${to} ${height}`) return;
    shown = `${from} ${to} ${height}`;
    const focused = document.activeElement?.closest("table.topics td a")?.getAttribute("href");
    above.style.height = `${from * height}px`;
    below.style.height = `${(rows.length - to) * height}px`;
    show(body, above, rows.slice(from, to).map((topic, n) => row(topic, from + n)), below);
    if (focused) body.querySelector(`a[href="${CSS.escape(focused)}"], a[href="${focused}"]`)?.focus({ preventScroll: true });
  }
  function update() {
    rows = chosen();
    show(bar, proportions());
    const pressed = document.activeElement?.closest(".tile")?.className;
    show(states, tiles((state) => { if (!kept.states.delete(state)) kept.states.add(state); update(); }));
    if (pressed) states.querySelector(`[class="${pressed}"]`)?.focus();
    heads.forEach((head, n) => head.setAttribute("aria-sort", COLUMNS[n].name !== kept.sort ? "none" : kept.way > 0 ? "ascending" : "descending"));
    grid.setAttribute("aria-rowcount", String(rows.length + 1));
    const some = rows.length === store.topics.size ? plural(rows.length, "topic") : `${count(rows.length)} of ${plural(store.topics.size, "topic")}`;
    show(totals, store.loaded ? `${some}, ${plural(sum(rows, (t) => t.records), "record")}, ${bytes(sum(rows, (t) => t.bytes))}` : "Reading the catalog …");
    empty.hidden = !store.loaded || rows.length > 0;
    show(empty, store.topics.size ? "No topic fits." : "There are no topics yet. ", store.topics.size ? null : h("code", null, "lithify topic create orders"));
    draw(true);
  }
  function move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const link = event.target.closest("td a");
    if (!step || !link) return;
    const index = rows.findIndex((t) => `#/topics/${encodeURIComponent(t.topic)}` === link.getAttribute("href")) + step;
    if (!rows[index]) return;
    event.preventDefault();
    const find = () => body.querySelector(`tr[aria-rowindex="${index + 2}"] a`);
    if (!find()) { scrollBy(0, step * innerHeight / 2); draw(true); }
    find()?.focus();
  }
  search.addEventListener("input", () => { kept.search = search.value; update(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { body.querySelector("td a")?.focus(); event.preventDefault(); }
    if (event.key === "Escape") { search.value = kept.search = ""; update(); }
  });
  grid.addEventListener("keydown", move);
  const scrolled = () => draw();
  addEventListener("scroll", scrolled, { passive: true });
  addEventListener("resize", scrolled);
  const ticking = setInterval(() => draw(true), 15000); // lags grow
  update();
  return {
    update(kinds) { if (kinds.has("topics") || kinds.has("events") || kinds.has("restarted")) update(); },
    close() { removeEventListener("scroll", scrolled); removeEventListener("resize", scrolled); clearInterval(ticking); },
  };
}
