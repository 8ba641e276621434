/* Forms of pages that are followed: they are sent without leaving the page, which is sent what came of it. */
import { trouble } from "./pieces.js";

export async function submit(event) {
  const form = event.target, button = event.submitter;
  if (!form.matches("form.live") || !document.querySelector("[data-live]")) return;
  event.preventDefault();
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  try {
    const body = new URLSearchParams(new FormData(form, button));
    const response = await fetch(form.action, { method: "POST", body, redirect: "manual" });
    if (response.type !== "opaqueredirect") return trouble(await reason(response));
    trouble("");
    sent(form, body);
  } catch {
    trouble("The server can't be reached: nothing was sent.");
  } finally {
    form.ariaBusy = null;
  }
}

/** Returns why a form was refused: the sentence of the page that says so. */
async function reason(response) {
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.querySelector("[role=alert]")?.textContent || `The server answered ${response.status}.`;
}

function sent(form, body) {
  const verb = new URL(form.action).pathname.split("/").pop();
  if (verb === "control" || verb === "release") {
    const here = new URL(location);
    if (verb === "control") here.searchParams.set("client", body.get("client"));
    else here.searchParams.delete("client");
    history.replaceState(null, "", here);
  }
  if (form.matches(".composer")) {
    const here = document.querySelector("form.composer") ?? form; // the page may have got another one meanwhile
    const text = here.querySelector("textarea");
    if (text.value === body.get("prompt")) text.value = "";
    const key = here.elements.key; // another prompt is another turn
    key.value = key.value.replace(/\.\d+$/, "") + "." + Date.now();
  }
}
