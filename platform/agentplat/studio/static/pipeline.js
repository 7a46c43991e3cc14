// Keeps the steps of a running pipeline as they are.
import { follow, inTurn } from "./stream.js";

const shown = document.getElementById("pipeline");
const scope = encodeURIComponent(shown.dataset.scope);

const stop = follow(() => `/monitoring/live/events?scope=${scope}`, document.getElementById("pipeline-link"), inTurn(async () => {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById("pipeline");
  const at = document.activeElement?.closest("#pipeline a")?.getAttribute("href");
  if (found.innerHTML !== shown.innerHTML) shown.innerHTML = found.innerHTML;
  // Whoever was on a link is still there.
  if (at) shown.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
  if (!page.getElementById("pipeline-cancel")) document.getElementById("pipeline-cancel")?.remove();
  if (!page.querySelector("script[src$='pipeline.js']")) stop();
}));
