// Parts of a page that the server renders again while the rest of it stays, focus, text and open parts included.

export async function renew() {
  // without an answer, the page stays as it is until the next call
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return;
  const rendered = new DOMParser().parseFromString(await answer.text(), "text/html");
  const focus = document.activeElement.closest("[data-live] a")?.getAttribute("href");
  for (const part of document.querySelectorAll("[data-live]")) {
    const now = rendered.querySelector(`[data-live="${part.dataset.live}"]`);
    if (now) part.replaceWith(now);
  }
  if (focus) document.querySelector(`[data-live] a[href="${CSS.escape(focus)}"]`)?.focus();
}
