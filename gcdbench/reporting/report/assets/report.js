"use strict";

/* Sorting: every leaf header becomes a button; sections (one tbody each) are sorted on their own. */
const valueOf = (row, column) => {
  const cell = row.cells[column];
  if (!cell) return null;
  const number = Number.parseFloat(cell.dataset.value);
  return Number.isNaN(number) ? cell.textContent.trim() : number;
};

const compare = (a, b) => {
  if (a === "—" || a === null) return 1;
  if (b === "—" || b === null) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
};

const sortTable = (table, column, ascending) => {
  for (const body of table.tBodies) {
    const fixed = [...body.rows].filter((row) => row.classList.contains("section"));
    const rows = [...body.rows].filter((row) => !row.classList.contains("section"));
    rows.sort((x, y) => {
      const [a, b] = [valueOf(x, column), valueOf(y, column)];
      const empty = (v) => v === "—" || v === null;
      if (empty(a) || empty(b)) return compare(a, b);
      return ascending ? compare(a, b) : compare(b, a);
    });
    body.append(...fixed, ...rows);
  }
};

for (const table of document.querySelectorAll("figure.result table")) {
  const heads = table.tHead ? [...table.tHead.rows].at(-1).cells : [];
  [...heads].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const numeric = table.tBodies.length > 0 && [...table.tBodies[0].rows].some((r) => typeof valueOf(r, column) === "number");
      const before = head.getAttribute("aria-sort");
      const ascending = before ? before === "descending" : !numeric;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sortTable(table, column, ascending);
    });
  });
}

/* Theme: the reader's system decides until the button is used. */
const theme = document.getElementById("theme");
theme?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

/* Run cards: filter by any word of their summary; a link to a card opens it. */
const filter = document.getElementById("filter");
filter?.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const card of document.querySelectorAll("details.card")) {
    const text = card.querySelector("summary").textContent.toLowerCase();
    card.hidden = !words.every((word) => text.includes(word));
  }
});

const openTarget = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
  }
};
addEventListener("hashchange", openTarget);
openTarget();

/* What is wider than its frame says so, because a phone shows no scroll bar. */
const hintAtScrolling = () => {
  for (const frame of document.querySelectorAll(".scroll")) {
    const wide = frame.scrollWidth > frame.clientWidth + 1;
    const before = frame.previousElementSibling;
    const hint = before?.classList.contains("hint") ? before : null;
    if (wide && !hint) {
      const text = document.createElement("p");
      text.className = "hint";
      text.textContent = "Scroll the table sideways for more →";
      frame.before(text);
    } else if (hint) {
      hint.hidden = !wide;
    }
  }
};
addEventListener("resize", hintAtScrolling);
document.addEventListener("toggle", hintAtScrolling, true);
hintAtScrolling();
