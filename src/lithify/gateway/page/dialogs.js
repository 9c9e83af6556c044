// Dialogs: a question, a plan before it runs, and the token of those who need one.

import { h, put, show } from "./dom.js";

export function dialog(title, ...content) {
  const body = h("div", { class: "body" }, ...content);
  const actions = h("div", { class: "actions" });
  const heading = h("h2", { id: `d${Math.random().toString(36).slice(2)}`, tabindex: "-1" }, title);
  const box = h("dialog", { "aria-labelledby": heading.id }, heading, body, actions);
  const close = () => box.close();
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => { if (event.target === box) close(); });
  const buttons = (...all) => show(actions, ...all);
  const button = (text, act, kind = "plain") => h("button", { type: "button", class: kind, onclick: act }, text);
  buttons(button("Close", close));
  document.body.append(box);
  box.showModal();
  heading.focus();
  return { box, body, close, buttons, button, title: (text) => show(heading, text), tell: (...parts) => show(body, ...parts), add: (...parts) => put(body, ...parts) };
}

export const errorText = (error) => h("div", { class: "error", role: "alert" },
  h("p", null, error.code ? h("code", null, error.code) : null, error.code ? " " : "", error.message),
  error.hint ? h("p", { class: "soft" }, error.hint) : null);

let pending = null;

// One question for all requests that need a token at the same time; null if it is refused. `wrong`: one was sent.
export function askToken(problem, wrong) {
  pending ||= new Promise((answer) => {
    const field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
    const asked = dialog(wrong ? "The token was not accepted" : "This gateway needs a token",
      h("p", null, "A token of ", h("code", null, "lithify token create"), ". It is kept until this tab is closed."),
      wrong ? errorText({ code: problem.code, message: problem.message }) : null,
      h("form", { onsubmit: (event) => { event.preventDefault(); give(); } },
        h("label", { for: "token" }, "Token"), field));
    const finish = (token) => { pending = null; answer(token || null); asked.close(); };
    // What no header can have is sent as `?`, so that the gateway says that it is none.
    const give = () => finish(field.value.replace(/\s+/g, "").replace(/[^!-~]/g, "?"));
    asked.buttons(asked.button("Cancel", () => finish(null)), asked.button("Use it", give, "primary"));
    asked.box.addEventListener("close", () => finish(null));
    field.focus();
  });
  return pending;
}
