"use strict";
// Filters the moves. Without this script all of them stand there.
const filter = document.getElementById("filter");
if (filter) {
  const rows = Array.from(document.querySelectorAll("#changes tbody tr"));
  const shown = document.getElementById("shown");
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word));
      row.hidden = !fits;
      if (fits) count += 1;
    }
    shown.textContent = count + " of " + rows.length;
  };
  filter.addEventListener("input", apply);
  apply();
}
