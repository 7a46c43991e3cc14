// Keeps the roster as it is.
import { follow, inTurn } from "./stream.js";

const roster = document.getElementById("roster");

if (roster) {
  const scope = encodeURIComponent(roster.dataset.scope);
  follow(() => `/monitoring/live/events?scope=${scope}`, document.getElementById("live-link"), inTurn(async () => {
    const answer = await fetch(`/monitoring/live/rows?scope=${scope}`);
    if (!answer.ok) return;
    const at = document.activeElement?.closest("#roster a")?.getAttribute("href");
    roster.innerHTML = (await answer.json()).rows;
    // Whoever was on a link is still there.
    if (at) roster.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
  }));
}
