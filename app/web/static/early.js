// A button clicked before the page's modules have run would do nothing: the click waits for them.

{
  let waiting = null;

  const hold = (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    waiting = button;
  };

  addEventListener("click", hold, true);
  // which comes after all modules that the page names have run
  addEventListener("DOMContentLoaded", () => {
    removeEventListener("click", hold, true);
    waiting?.click();
  });
}
