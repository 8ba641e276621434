/* Follows what the server sends to an open page: harnpy/serve/portal/live.py says what that is. */
import { elements, put, trouble } from "./pieces.js";

/** From how near the end on the page stays at its end, in pixels; how many entries it keeps. */
const NEAR = 40, MOST = 300;
/** Milliseconds: until a page that nobody sees is let go of, between signs of life, before another try. */
const HIDDEN = 60_000, BEAT = 10_000, AGAIN = 2_000;
const LOST = "Not connected: trying again.";

const list = document.getElementById("entries");
const draft = document.getElementById("draft");
const earlier = document.getElementById("earlier");
const newer = document.getElementById("newer");
const root = document.documentElement;

/** Whether the page follows what is said: whoever scrolls up, or unfolds something, stays where they are. */
let follows = !location.hash, top = 0;

export function follow(place) {
  const address = new URL(place.dataset.live, location);
  let source = null, waiting = 0;

  function open() {
    clearTimeout(waiting);
    if (source) return;
    source = new EventSource(address);
    for (const [kind, does] of Object.entries(KINDS)) {
      source.addEventListener(kind, (event) => {
        if (event.lastEventId) address.searchParams.set("after", event.lastEventId);
        does(JSON.parse(event.data), close);
      });
    }
    source.onopen = () => trouble("");
    source.onerror = () => {
      trouble(LOST);
      if (source.readyState !== EventSource.CLOSED) return; // it tries by itself
      close();
      waiting = setTimeout(open, AGAIN);
    };
  }

  function close() {
    source?.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(waiting);
    if (!document.hidden) open();
    else waiting = setTimeout(() => document.getElementById("beat") || close(), HIDDEN);
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
  setInterval(beat, BEAT);
  if (list) stayAtEnd(place);
}

function stayAtEnd(place) {
  newer.addEventListener("click", toEnd);
  list.addEventListener("click", (event) => { if (event.target.closest("summary")) follows = false; });
  addEventListener("scroll", () => {
    if (isAtEnd()) follows = newer.hidden = true;
    else if (scrollY < top) follows = false;
    top = scrollY;
  }, { passive: true });
  new ResizeObserver(() => { if (follows) toEnd(); }).observe(place);
}

const KINDS = {
  entries: ({ html }) => add(elements(html)),
  all({ html }) {
    list.replaceChildren(...elements(html));
    say("", true);
  },
  chunk: ({ text, start }) => say(text, start),
  region: ({ id, html }) => put(id, html),
  gone(_, close) {
    close();
    if (list) trouble("This session is gone.");
  },
};

function add(made) {
  for (const entry of made) {
    if (entry.matches(".assistant")) say("", true);
    const known = document.getElementById(entry.id);
    if (known) known.replaceWith(entry);
    else list.append(entry);
  }
  newer.hidden = follows;
  while (list.childElementCount > MOST && follows) list.firstElementChild.remove();
  if (list.childElementCount >= MOST) {
    const link = new URL(location.pathname, location);
    link.searchParams.set("before", list.firstElementChild.id.slice(1));
    earlier.querySelector("a").href = link;
    earlier.hidden = false;
  }
}

/** Shows a piece of the answer that is being made; `start`: in place of what is shown. */
function say(text, start) {
  if (!draft) return;
  const shown = draft.querySelector(".plain");
  if (start) shown.textContent = text;
  else if (shown.firstChild) shown.firstChild.appendData(text);
  else shown.textContent = text;
  draft.hidden = !shown.firstChild;
}

function isAtEnd() {
  return innerHeight + scrollY >= root.scrollHeight - NEAR;
}

function toEnd() {
  scrollTo(0, root.scrollHeight);
}

/** Tells the server that whoever is in control is there. */
function beat() {
  const sign = document.getElementById("beat");
  if (!sign) return;
  const body = JSON.stringify({ client: sign.value });
  const headers = { "Content-Type": "application/json" };
  fetch(sign.dataset.to, { method: "POST", headers, body }).catch(() => trouble(LOST));
}
