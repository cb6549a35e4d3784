// What every page has: buttons that copy, and buttons that ask the API for a change and then show what has become of it.

import { call, Refusal } from "./api.js";
import "./stacked.js";

const toast = document.getElementById("toast");
const dialog = document.getElementById("confirm");

export function say(text, kind = "bad") {
  toast.className = `toast notice ${kind}`;
  toast.textContent = text;
  toast.hidden = false;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { toast.hidden = true; }, 10000);
}

export function confirmed(question) {
  document.getElementById("confirm-text").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

async function copy(button) {
  const text = button.closest("div").parentElement.querySelector("pre").textContent;
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.", "good");
  } catch {
    say("The browser does not allow this page to copy. Select the text and copy it.");
  }
}

async function act(button) {
  const { method, path, body, ifMatch, confirm, then, busy } = button.dataset;
  if (confirm && !(await confirmed(confirm))) return;
  button.disabled = true;
  if (busy) button.textContent = busy;
  try {
    const headers = ifMatch === undefined ? {} : { "If-Match": ifMatch };
    const made = await call(method, path, body === undefined ? undefined : JSON.parse(body), headers);
    if (then) location.assign(then.replace("{id}", made?.id));
    else location.reload();
  } catch (error) {
    say([error.message, ...(error.lines ?? [])].join(" "));
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.copy !== undefined) copy(button);
  else if (button?.dataset.path !== undefined) act(button);
});

// a refusal that no part of the page has shown in its own place
addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Refusal) say([event.reason.message, ...event.reason.lines].join(" "));
});

// a choice that reloads the page keeps the focus, or the next arrow key would be lost
export function stay(field) {
  sessionStorage.setItem("focus", field.id);
}

// forms that only choose what the page shows
document.addEventListener("change", (event) => {
  if (!event.target.matches("select[data-go]")) return;
  stay(event.target);
  event.target.form.requestSubmit();
});

document.getElementById(sessionStorage.getItem("focus"))?.focus();
sessionStorage.removeItem("focus");

// where the navigation is one line wider than the window, scroll to the current page
const here = document.querySelector(".side [aria-current]");
if (here) {
  const line = here.closest("nav");
  line.scrollLeft = here.offsetLeft - line.offsetLeft - (line.clientWidth - here.offsetWidth) / 2;
}
