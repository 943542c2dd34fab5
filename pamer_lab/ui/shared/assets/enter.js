// Reports the table cell on which Enter was pressed, with the texts of its row, since a sorted table shows its rows in another order.
// For screen readers, the grid keeps the focused cell as an element of a table.

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
