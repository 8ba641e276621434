/* What every page does beside being read: times in the reader's zone, keys, forms, what the server sends. */
import { follow } from "./live.js";
import { listen } from "./keys.js";
import { submit } from "./forms.js";
import { times } from "./pieces.js";

times(document);
listen();
document.addEventListener("submit", submit);
const place = document.querySelector("[data-live]");
if (place) follow(place);
