// Pointing at an agent or an event, or coming to it by keyboard, lights up what it is connected with.
const picture = document.querySelector("svg.graph");

function light(number) {
  const near = new Set([number]);
  for (const line of picture.querySelectorAll("[data-ends]")) {
    const ends = line.dataset.ends.split(" ");
    const lit = ends.includes(number);
    line.classList.toggle("lit", lit);
    if (lit) ends.forEach((end) => near.add(end));
  }
  picture.classList.toggle("dimmed", number !== undefined);
  for (const node of picture.querySelectorAll("[data-node]")) {
    node.classList.toggle("lit", number !== undefined && near.has(node.dataset.node));
  }
}

if (picture) {
  for (const [on, off] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    picture.addEventListener(on, (event) => {
      const node = event.target.closest("[data-node]");
      if (node) light(node.dataset.node);
    });
    picture.addEventListener(off, () => light(undefined));
  }
}
