// Tables: a click on a head sorts, once more turns the order; a search leaves the rows that hold a text.
function sortable(table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const valueOf = (row, column) => row.cells[column].dataset.v ?? row.cells[column].textContent;
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const numeric = head.classList.contains("number");
    const falling = head.ariaSort ? head.ariaSort === "ascending" : numeric && !/^[pq]$/.test(head.textContent);
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const sign = falling ? -1 : 1;
    const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
    rows.sort(([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === ""); // what is not there comes last
      return sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    body.append(...rows.map(([, row]) => row));
  }));
}

for (const section of document.querySelectorAll("section.table")) {
  sortable(section.querySelector("table"));
  section.querySelector(".search")?.addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const row of section.querySelectorAll("tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
