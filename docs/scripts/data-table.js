// Tables of CSV files: a button in each heading sorts, a box and one list per column of few names filter.
document.querySelectorAll("div.data-table").forEach((block) => {
  const table = block.querySelector("table"), body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells], rows = [...body.rows];
  const place = new Map(rows.map((row, i) => [row, i]));
  const text = (row, column) => row.cells[column].textContent;
  const value = (row, column) => (text(row, column) ? parseFloat(text(row, column).replace(/−/g, "-").replace(/,/g, "")) : NaN);
  const isNumber = headings.map((_, column) => rows.some((row) => row.cells[column].className === "number"));

  const controls = document.createElement("form"), count = document.createElement("output");
  controls.addEventListener("submit", (event) => event.preventDefault());
  const add = (label, control) => {
    const wrapper = document.createElement("label");
    wrapper.append(label, control);
    controls.append(wrapper);
    control.addEventListener("input", filter);
    return control;
  };
  const search = add("Search", Object.assign(document.createElement("input"), { type: "search" }));
  const lists = headings.map((heading, column) => {
    const names = [...new Set(rows.map((row) => text(row, column)))];
    if (isNumber[column] || names.length < 2 || names.length > 60) return null;
    const list = add(heading.textContent, document.createElement("select"));
    ["", ...names.filter(Boolean)].forEach((name) => list.add(new Option(name || "all", name)));
    return list;
  });
  controls.append(count);
  block.prepend(controls);

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row) => {
      const all = row.textContent.toLowerCase();
      const chosen = lists.every((list, column) => !list || !list.value || text(row, column) === list.value);
      row.hidden = !(chosen && words.every((word) => all.includes(word)));
      shown += !row.hidden;
    });
    count.textContent = `${shown} of ${rows.length} rows`;
  }

  function sort(column, direction) {
    const compare = isNumber[column]
      ? (a, b) => direction * (value(a, column) - value(b, column))
      : (a, b) => direction * text(a, column).localeCompare(text(b, column));
    const isEmpty = (row) => text(row, column) === "";  // last in both directions
    rows.sort((a, b) => isEmpty(a) - isEmpty(b) || compare(a, b) || place.get(a) - place.get(b));
    body.append(...rows);
    headings.forEach((heading, i) => {
      if (i === column) heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else heading.removeAttribute("aria-sort");
    });
  }

  headings.forEach((heading, column) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: heading.textContent });
    button.addEventListener("click", () => sort(column, heading.getAttribute("aria-sort") === "ascending" ? -1 : 1));
    heading.replaceChildren(button);
  });
  filter();
});
