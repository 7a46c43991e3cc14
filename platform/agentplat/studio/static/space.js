// A space that stays open: what is said comes in by itself, and @ and # are completed.
import { follow, inTurn } from "./stream.js";

const list = document.getElementById("space-messages");
const { path, place } = list.dataset;
let last = Number(list.dataset.last);

const fetchNews = inTurn(async () => {
  let page;
  do {
    const answer = await fetch(`${path}/news?after=${last}`);
    if (!answer.ok) return;
    page = await answer.json();
    const part = document.createElement("template");
    part.innerHTML = page.messages;
    for (const message of [...part.content.querySelectorAll("[data-message]")]) {
      if (Number(message.dataset.message) > last) { last = Number(message.dataset.message); message.classList.add("new"); list.append(message); }
    }
    document.getElementById("space-activity").innerHTML = page.activity;
  } while (page.more);
});

if (!("more" in list.dataset)) follow(() => `${path}/events`, document.getElementById("space-link"), fetchNews);

const body = document.getElementById("body");
const box = document.getElementById("completions");

function word() {
  const before = body.value.slice(0, body.selectionStart);
  const found = /(?:^|\s)([@#][^\s@#]*)$/.exec(before);
  return found ? { text: found[1], start: before.length - found[1].length } : undefined;
}

function close() {
  box.hidden = true;
  box.replaceChildren();
  body.setAttribute("aria-expanded", "false");
  body.removeAttribute("aria-activedescendant");
}

function choose(option) {
  const at = word();
  if (at) body.setRangeText(`${option.dataset.insert} `, at.start, body.selectionStart, "end");
  close();
  body.focus();
}

function point(step) {
  const options = [...box.children];
  const now = options.findIndex((option) => option.ariaSelected === "true");
  options.forEach((option) => { option.ariaSelected = "false"; });
  const next = options[(now + step + options.length) % options.length];
  next.ariaSelected = "true";
  next.scrollIntoView({ block: "nearest" });
  body.setAttribute("aria-activedescendant", next.id);
}

const complete = inTurn(async () => {
  const at = word();
  if (!at) { close(); return; }
  const answer = await fetch(`${place}/complete?text=${encodeURIComponent(at.text)}`);
  if (!answer.ok || word()?.text !== at.text) return;
  box.replaceChildren(...(await answer.json()).map((one, i) => {
    const option = document.createElement("li");
    option.id = `completion-${i}`;
    option.role = "option";
    option.dataset.insert = one.insert;
    option.textContent = one.label;
    option.addEventListener("pointerdown", (event) => { event.preventDefault(); choose(option); });
    return option;
  }));
  box.hidden = box.childElementCount === 0;
  body.setAttribute("aria-expanded", String(!box.hidden));
  if (!box.hidden) point(1);
});

body?.addEventListener("input", complete);
body?.addEventListener("keydown", (event) => {
  if (box.hidden) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); point(step); }
  if (event.key === "Escape") { event.preventDefault(); close(); }
  if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); choose(box.querySelector("[aria-selected=true]")); }
});
body?.addEventListener("blur", close);
