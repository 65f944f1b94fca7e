// The table of kernels of a page, whose `columns` are [name, kind, key, text]: a click on the
// head of one sorts by its key.
let sortedBy = 0, sortedDown = false;

function sortBy(column, show) {
  sortedDown = sortedBy === column ? !sortedDown : column > 2;
  sortedBy = column;
  show();
  byId("kernels").querySelectorAll("th button")[column].focus();
}

function sortedHeads(show) {
  return make("thead", {}, make("tr", {}, ...columns.map(([name, kind], i) => {
    const button = make("button", {type: "button"}, name);
    button.addEventListener("click", () => sortBy(i, show));
    const head = make("th", {scope: "col", class: kind === "nodes" ? "text" : kind}, button);
    if (i === sortedBy) head.setAttribute("aria-sort", sortedDown ? "descending" : "ascending");
    return head;
  })));
}

// Equal ones stay in the order of a run.
function sortRows(rows) {
  const key = columns[sortedBy][2];
  const compare = (a, b) => typeof a === "string" ? a.localeCompare(b) : a - b;
  return rows.sort((a, b) => (sortedDown ? -1 : 1) * compare(key(a), key(b)) || a.number - b.number);
}
