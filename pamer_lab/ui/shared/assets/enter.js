// Enter on a cell of a table: which cell, by the texts of its row, since a table that was sorted shows its rows in another order.
// The grid keeps the cell in focus as an element of its table for screen readers.

export default function ({ data, setTriggerValue }) {
  const pressed = (event) => {
    if (event.key !== "Enter") return;
    const cell = document.activeElement?.closest?.('td[id^="glide-cell-"]');
    if (!cell?.closest(`.st-key-${CSS.escape(data.table)}`)) return;
    const cells = [...cell.closest("tr").querySelectorAll("td")].map((one) => one.textContent);
    setTriggerValue("entered", { cell: cell.textContent, row: Number(cell.id.split("-")[3]), cells });
  };
  document.addEventListener("keydown", pressed, true);
  return () => document.removeEventListener("keydown", pressed, true);
}
