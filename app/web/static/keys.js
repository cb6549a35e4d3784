// A new key, whose secret is shown once.

import { call } from "./api.js";
import { element, faults } from "./words.js";

const form = document.getElementById("new-key");
const said = form.querySelector("[data-said]");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = form.querySelector("#key-name").value;
  try {
    const end = form.querySelector("#key-end").value;
    const body = { name, role: form.querySelector("#key-role").value };
    if (form.querySelector("#key-promotes").checked) body.promotes = true;
    if (end) body.expires_at = `${end}T23:59:59Z`;
    const made = await call("POST", "/keys", body);
    form.querySelector("#key-name").value = "";
    const head = element("div", { class: "head" }, element("strong", {}, `Key ${name}. It is shown only once.`), element("button", { class: "small", type: "button", "data-copy": true }, "Copy"));
    said.replaceChildren(element("div", { class: "notice good", role: "status" }, head, element("pre", {}, made.secret), element("a", { href: "/keys" }, "Done")));
  } catch (error) {
    said.replaceChildren(faults(error));
  }
});
