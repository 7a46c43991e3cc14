// Line numbers beside the manifest, faulty lines marked, and links from a fault to its line.
const area = document.getElementById("manifest");
const faulty = new Set(area.dataset.faults.split(" ").filter(Boolean).map(Number));
const gutter = document.createElement("ol");
gutter.className = "gutter";
gutter.setAttribute("aria-hidden", "true");
area.parentElement.prepend(gutter);

function number() {
  const count = area.value.split("\n").length;
  while (gutter.childElementCount < count) {
    const line = document.createElement("li");
    if (faulty.has(gutter.childElementCount + 1)) line.className = "faulty";
    gutter.append(line);
  }
  while (gutter.childElementCount > count) gutter.lastElementChild.remove();
  gutter.scrollTop = area.scrollTop;
}

area.addEventListener("input", number);
area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; });
number();

for (const link of document.querySelectorAll("a[data-line]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const lines = area.value.split("\n");
    const line = Number(link.dataset.line) - 1;
    const start = lines.slice(0, line).reduce((sum, text) => sum + text.length + 1, 0);
    const from = start + Math.max(0, Number(link.dataset.column) - 1);
    area.focus();
    area.setSelectionRange(from, start + (lines[line] ?? "").length);
    area.scrollTop = Math.max(0, line - 4) * parseFloat(getComputedStyle(area).lineHeight);
  });
}
