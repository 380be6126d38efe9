// Filters and sorting of the table of verdicts. Without this script the table shows every row.
(() => {
  "use strict";
  const table = document.getElementById("verdicts");
  const form = document.getElementById("filters");
  if (table && form) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const section = document.getElementById("cells");
    const count = document.getElementById("count");
    const [claim, verdict, data, text] = ["f-claim", "f-verdict", "f-data", "f-text"].map((id) =>
      document.getElementById(id),
    );
    const number = new Intl.NumberFormat("en");

    const fits = (row, place, words) =>
      (!claim.value || row.dataset.c === claim.value) &&
      (!verdict.value ||
        (verdict.value === "against"
          ? row.classList.contains("against")
          : row.dataset.v === verdict.value)) &&
      (!data.value || row.dataset.d === data.value) &&
      words.every((word) => texts[place].includes(word));

    const apply = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !fits(row, place, words);
        shown += row.hidden ? 0 : 1;
      });
      const filtered = Boolean(claim.value || verdict.value || data.value || words.length);
      section.classList.toggle("filtered", filtered);
      const total = number.format(rows.length);
      count.textContent = !filtered
        ? `${total} cells`
        : shown
          ? `${number.format(shown)} of ${total} cells`
          : `None of ${total} cells fits; “Show all” clears the filters.`;
    };

    // "0.1", "1,000", "4.3×", ">9999×" and "10 (max)" are numbers; words come after them.
    const value = (cell) => parseFloat(cell.textContent.replace(/[,>]/g, ""));
    const heads = Array.from(table.tHead.rows[0].cells);
    const sortBy = (place) => {
      const head = heads[place];
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.classList.contains("n");
      const keys = new Map(
        rows.map((row) => {
          const cell = row.cells[place];
          return [row, numeric ? value(cell) : cell.textContent];
        }),
      );
      const compare = (a, b) => {
        const [left, right] = [keys.get(a), keys.get(b)];
        if (!numeric) return left.localeCompare(right, "en", { numeric: true }) * (down ? -1 : 1);
        if (Number.isNaN(left) || Number.isNaN(right))
          return Number.isNaN(left) - Number.isNaN(right);
        return (left - right) * (down ? -1 : 1);
      };
      body.append(...rows.slice().sort(compare));
    };
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sortBy(place));
      head.append(button);
    });

    let waiting = 0;
    text.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(apply, 120);
    });
    for (const choice of [claim, verdict, data]) choice.addEventListener("change", apply);
    form.addEventListener("reset", () => setTimeout(apply));
    form.addEventListener("submit", (event) => event.preventDefault());
    for (const link of document.querySelectorAll("[data-show]")) {
      link.addEventListener("click", () => {
        form.reset();
        claim.value = link.dataset.show;
        apply();
      });
    }
    form.hidden = false;
    apply();
  }

  // A link to a claim opens it; on paper everything is open.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = Array.from(document.querySelectorAll("details.claim:not([open])"));
    for (const claim of closed) claim.open = true;
  });
  addEventListener("afterprint", () => {
    for (const claim of closed) claim.open = false;
  });
})();
