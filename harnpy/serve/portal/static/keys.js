/* The keys. Each is in the list that `?` shows: harnpy/serve/portal/shell.py. */

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  u: unfold,
  c: control,
  "/": () => document.getElementById("search")?.focus(),
  "?": () => document.getElementById("help").showModal(),
};
/** What `j` and `k` go through. */
const ENTRIES = ".talk > li, .tree a, .hits a, main table a, .timeline a";

export function listen() {
  document.addEventListener("keydown", pressed);
  const button = document.getElementById("keys");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", KEYS["?"]);
}

function pressed(event) {
  const { key, target } = event;
  if (target.matches("input:not([type=checkbox]), textarea, select")) {
    if (key === "Escape") target.blur();
    if (key === "Enter" && (event.ctrlKey || event.metaKey)) target.form?.requestSubmit();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, key)) return;
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  KEYS[key]();
}

function current() {
  return document.activeElement?.closest(ENTRIES);
}

function step(by) {
  const all = [...document.querySelectorAll(ENTRIES)];
  const at = all.indexOf(current());
  let next = all[at + by];
  if (at < 0) {
    const seen = all.filter((each) => each.getBoundingClientRect().top < innerHeight && each.getBoundingClientRect().bottom > 60);
    next = by > 0 ? seen[0] : seen.at(-1);
  }
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

function unfold() {
  const all = [...(current() || document.getElementById("main")).querySelectorAll("details")];
  const open = !all.some((each) => each.open);
  for (const each of all) if (each.open !== open) each.querySelector("summary").click();
}

function control() {
  const button = document.getElementById("control-button");
  const prompt = document.getElementById("prompt");
  if (button) button.form.requestSubmit(button);
  else prompt?.focus();
}
