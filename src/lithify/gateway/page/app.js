// The frame of the page: which view is shown, the state of the connection, colors, tokens, news of the gateway.

import { asksForTokens, useAnotherToken } from "./api.js";
import { activity } from "./activity.js";
import { askToken, dialog } from "./dialogs.js";
import { h, show } from "./dom.js";
import { cleaners } from "./cleaners.js";
import { fleet, isSilent, keepWatch } from "./fleet.js";
import { overview } from "./overview.js";
import { readers } from "./readers.js";
import { standingJobs } from "./standing.js";
import { follow, store, watch } from "./store.js";
import { topicView } from "./topic.js";

const THEMES = ["light dark", "light", "dark"];
const NAMES = { "light dark": "as the system has them", light: "light", dark: "dark" };
const root = document.documentElement;
const main = document.getElementById("main");
const views = { topics: overview, activity, cleaners, readers, jobs: standingJobs };

let view = null; // {update(kinds), close()}

function paint(theme) {
  root.style.colorScheme = theme;
  document.getElementById("theme").setAttribute("aria-label", `Colors: ${NAMES[theme]}`);
}

function chooseTheme() {
  const next = THEMES[(THEMES.indexOf(localStorage.getItem("lithify-theme") || THEMES[0]) + 1) % THEMES.length];
  localStorage.setItem("lithify-theme", next);
  paint(next);
}

// A link may have any text there.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function route() {
  const [name = "topics", ...rest] = location.hash.replace(/^#\//, "").split("/").map(decoded);
  const place = rest.length && name === "topics" ? "topic" : name || "topics";
  if (view?.moves?.(place, rest)) return mark(name);
  view?.close?.();
  show(main);
  view = place === "topic" ? topicView(main, rest) : (Object.hasOwn(views, place) ? views[place] : overview)(main, rest);
  view.place = place;
  mark(name);
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function mark(name) {
  for (const link of document.querySelectorAll(".bar nav a")) {
    if (link.getAttribute("href") === `#/${name || "topics"}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function showLive() {
  const live = document.getElementById("live");
  const texts = { live: store.gateway?.gateway || "live", lost: "not connected", connecting: "connecting", limited: "some streams", refused: "no token" };
  live.className = `live ${store.live}`;
  live.lastElementChild.textContent = texts[store.live];
  live.title = store.live === "live" ? `Gateway ${store.gateway?.gateway}, Lithify ${store.gateway?.version}` : store.trouble || "It is tried again and again";
}

const LIVE_TEXTS = {
  lost: () => store.trouble ? `The gateway refuses to answer: ${store.trouble}. It is tried again and again.`
    : store.gateway ? "The gateway does not answer. What is shown here is as it was; it is tried again and again." : null,
  limited: () => `What this token may see is read every few seconds, without rounds as they run: ${store.trouble}.`,
  refused: () => `Nothing is shown without a token: ${store.trouble}.`,
};

function standing(id, text, ...more) {
  let box = document.getElementById(id);
  if (!text) return box?.remove();
  if (box?.firstChild.textContent === text) return null;
  box?.remove();
  box = h("div", { id, class: "banner", role: "status" }, h("span", null, text), ...more);
  main.before(box);
  return box;
}

function showNews(kinds) {
  if (kinds.has("live") || kinds.has("gateway")) {
    showLive();
    const tokens = store.live === "limited" || store.live === "refused";
    standing("lost", LIVE_TEXTS[store.live]?.(),
      ...(tokens ? [h("button", { type: "button", onclick: useAnotherToken }, store.live === "limited" ? "Use another token" : "Give a token")] : []));
  }
  if (kinds.has("gateway") && store.gateway.page !== root.dataset.page) {
    standing("upgraded", "The gateway has another version of this page.",
      h("button", { type: "button", onclick: () => location.reload() }, "Reload"));
  }
  if (kinds.has("catalog") || kinds.has("topics")) {
    standing("unreadable", store.error ? `The catalog cannot be read: ${store.error}` : null);
  }
  if (kinds.has("fleet")) {
    const silent = (fleet.cleaners || []).filter(isSilent).length;
    badge("silent", silent, `${silent} silent`);
  }
  if (kinds.has("running")) {
    const jobs = [...store.jobs.values()].filter((job) => !job.ended_ms).length;
    const number = store.running.size + jobs;
    badge("running", number, `${number} running`);
  }
}

function badge(id, number, label) {
  const box = document.getElementById(id);
  box.hidden = !number;
  box.textContent = number ? ` ${number}` : "";
  box.setAttribute("aria-label", label);
}

const KEYS = [["/", "search the topics"], ["↑ ↓", "move between topics; in a drawing, between its parts"],
  ["Enter", "open a topic"], ["Esc", "clear the search, close a dialog"], ["?", "this list"]];

function keyboard(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  if (event.key === "?") {
    dialog("Keys", h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)])));
  } else if (event.key === "/") {
    const field = document.getElementById("search");
    if (field) field.focus();
    else location.hash = "#/topics";
  } else return;
  event.preventDefault();
}

paint(localStorage.getItem("lithify-theme") || THEMES[0]);
asksForTokens(askToken);
document.getElementById("theme").addEventListener("click", chooseTheme);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", route);
addEventListener("keydown", keyboard);
watch((kinds) => { showNews(kinds); view?.update?.(kinds); });
route();
follow();
keepWatch();
