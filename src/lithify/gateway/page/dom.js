// Elements from code. Texts become text nodes, never markup: names and values of records come from anywhere.

const SVG = "http://www.w3.org/2000/svg";
// Controls, direction marks, zero-width characters: a browser acts on them, or hides them.
const STEERING = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const SPOKEN = ["title", "aria-label", "aria-valuetext"];

// The text with such characters escaped, as on the command line.
export const visible = (text) => String(text).replace(STEERING, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [rule, set] of Object.entries(value)) element.style.setProperty(rule, set);
    else if (name === "value" || name === "disabled" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : SPOKEN.includes(name) ? visible(value) : String(value));
  }
  put(element, ...children);
  return element;
}

export function put(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return element;
}

// h("p", {class: "soft"}, "text", h("b", null, 3))
export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export function show(element, ...children) {
  element.replaceChildren();
  return put(element, ...children);
}

// The same for what is drawn again and again: the focus stays on its link, or on what has its `data-key`.
export function redraw(element, ...children) {
  const at = element.contains(document.activeElement) ? document.activeElement : null;
  const name = at?.dataset.key ? "data-key" : at?.hasAttribute("href") ? "href" : null;
  const found = name && `[${name}="${CSS.escape(at.getAttribute(name))}"]`;
  show(element, ...children);
  if (found) element.querySelector(found)?.focus({ preventScroll: true });
  return element;
}

// Says something to a screen reader, and shows it for a while.
export function notice(text, kind = "good", more = null) {
  const box = h("div", { class: `notice ${kind}` }, h("p", null, text), more,
    h("button", { type: "button", class: "plain", "aria-label": "Dismiss", onclick: () => box.remove() }, "×"));
  const all = document.getElementById("notices");
  all.append(box);
  while (all.children.length > 4) all.firstElementChild.remove();
  if (kind === "good") setTimeout(() => box.remove(), 8000);
  return box;
}

export function table(caption, headers, rows, numbers = []) {
  const cell = (tag, n, content, scope) =>
    h(tag, { class: numbers.includes(n) ? "number" : null, scope }, content);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "facts" },
      h("caption", { class: "unseen" }, caption),
      h("thead", null, h("tr", null, headers.map((text, n) => cell("th", n, text, "col")))),
      h("tbody", null, rows.map((row) => h("tr", null, row.map((text, n) =>
        n === 0 ? cell("th", n, text, "row") : cell("td", n, text)))))));
}

// A figure whose parts are visited with the arrow keys or the pointer; `tell(n)` gives the text of part n.
export function visitable(label, drawing, parts, tell, at) {
  let now = -1;
  const box = h("div", {
    class: "visitable", role: "slider", tabindex: "0", "aria-label": label, "aria-valuemin": "0",
    "aria-valuemax": String(Math.max(0, parts - 1)), "aria-valuenow": "0", "aria-valuetext": `${parts} ${parts === 1 ? "part" : "parts"}`,
  }, drawing);
  const out = h("p", { class: "readout", "aria-hidden": "true" });
  const visit = (n) => {
    now = Math.max(0, Math.min(parts - 1, n));
    const text = parts ? tell(now) : "";
    box.dataset.at = now;
    box.setAttribute("aria-valuenow", String(now));
    box.setAttribute("aria-valuetext", visible(text));
    show(out, text);
    box.dispatchEvent(new CustomEvent("visit", { detail: now }));
  };
  const leave = () => { delete box.dataset.at; show(out); box.dispatchEvent(new CustomEvent("visit", { detail: -1 })); };
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (step) visit(now + step);
    else if (event.key === "Home") visit(0);
    else if (event.key === "End") visit(parts - 1);
    else return;
    event.preventDefault();
  });
  box.addEventListener("pointermove", (event) => {
    const n = at(event);
    if (n >= 0 && n !== now) visit(n);
  });
  box.addEventListener("pointerleave", () => { now = -1; leave(); });
  box.addEventListener("blur", leave);
  box.addEventListener("go", (event) => visit(event.detail)); // after it was drawn again
  return { box, out };
}
