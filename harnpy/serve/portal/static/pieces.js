/* Pieces of pages, as the server made them: nothing here makes any HTML. */

/** Returns the elements of a piece. */
export function elements(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  times(template.content);
  return [...template.content.children];
}

/** Shows times in the reader's zone, as wide as they were. */
export function times(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    const local = new Date(at - at.getTimezoneOffset() * 60000).toISOString();
    time.textContent = local.slice(16 - time.textContent.length, 16).replace("T", " ");
  }
}

/** Puts a piece in place of the one with its id. What was typed there stays, and the focus. */
export function put(id, html) {
  const old = document.getElementById(id);
  const [made] = elements(html);
  if (!old || !made) return;
  for (const field of old.querySelectorAll("textarea[id], input[id]")) {
    const twin = made.querySelector(`#${CSS.escape(field.id)}`);
    if (twin) twin.value = field.value;
  }
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const at = focused?.selectionStart;
  old.replaceWith(made);
  if (!focused) return;
  const again = focused.id && document.getElementById(focused.id);
  (again || made.querySelector("textarea, button") || document.getElementById("main")).focus({ preventScroll: true });
  if (again && at != null && again.setSelectionRange) again.setSelectionRange(at, at);
}

/** Says what went wrong; nothing, when it goes on. */
export function trouble(said) {
  const place = document.getElementById("trouble");
  if (place && place.textContent !== said) place.textContent = said;
}
