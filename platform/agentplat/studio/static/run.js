// Shows the steps of an open run as they come. What is asked for is always what follows the last step shown.
import { follow, inTurn } from "./stream.js";

const list = document.getElementById("run-steps");
const hint = document.getElementById("run-link");
const run = list.dataset.run;
let last = Number(list.dataset.last), stop;

const fetchSteps = inTurn(async () => {
  let page;
  do {
    const answer = await fetch(`/runs/${run}/steps?after=${last}`, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    page = await answer.json();
    const part = document.createElement("template");
    part.innerHTML = page.steps;
    for (const step of [...part.content.querySelectorAll("[data-step]")]) {
      if (Number(step.dataset.step) > last) { last = Number(step.dataset.step); step.classList.add("new"); list.append(step); }
    }
    for (const name of ["head", "facts", "after"]) {
      const place = document.getElementById(`run-${name}`);
      if (place.innerHTML !== page[name]) place.innerHTML = page[name];
    }
  } while (page.more);
  if (page.ended) { stop?.(); document.getElementById("run-cancel")?.remove(); }
});

if (!("more" in list.dataset)) stop = follow(() => `/runs/${run}/events?after=${last}`, hint, fetchSteps);
