// On a narrow screen each section of a long page is folded below its heading, and the page fits a few screens.

import { element } from "./words.js";

const narrow = matchMedia("(max-width: 52rem)");
const folds = [];

function fold(section) {
  const heading = section.querySelector(":scope > h2, :scope > .head > h2");
  if (!heading) return;
  const focused = section.contains(document.activeElement) ? document.activeElement : null;
  const details = element("details", { class: "fold" }, element("summary", {}, heading));
  details.append(...section.childNodes);
  section.append(details);
  // a chart that is drawn while it is folded has no width yet
  details.addEventListener("toggle", () => dispatchEvent(new Event("resize")));
  // scripts and links lead to the section, and moving an element takes its focus
  section.addEventListener("focus", () => { details.open = true; });
  if (focused) {
    details.open = true;
    focused.focus();
  }
  folds.push(details);
}

function unfoldTarget() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  const details = target?.closest("details.fold") ?? target?.querySelector(":scope > details.fold");
  if (!details) return;
  details.open = true;
  target.scrollIntoView();
}

if (narrow.matches) {
  document.querySelectorAll("main section.card:not([data-unfolded])").forEach(fold);
  unfoldTarget();
  addEventListener("hashchange", unfoldTarget);
  narrow.addEventListener("change", () => { if (!narrow.matches) folds.forEach((each) => { each.open = true; }); });
}
