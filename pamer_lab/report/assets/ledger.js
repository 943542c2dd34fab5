// Where is every block? Rows are blocks, block 0 at the top as on the page; columns are turns; neighbours in one state are one rectangle, so long traces stay light.

function ledgerChart(width, run, selected, onPick) {
  const turns = run.turns.length;
  const states = run.turns.map((turn) => statesOf(turn.states));
  const height = Math.min(300, Math.max(120, 44 + turns * 6));
  const chart = axes(width, height, {
    xMin: 0, xMax: Math.max(1, turns - 1), yMin: 0, yMax: Math.max(1, turns - 1), yDown: true, xTitle: "turn", yTitle: "block", yFormat: String,
    label: "State of every earlier block at every turn",
  });
  const { root, x, y } = chart;
  const cell = { width: Math.max(1, x(1) - x(0)), height: Math.max(1, y(1) - y(0)) };
  root.append(svg("defs", {}, svg("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { class: "hatch-ground", width: 5, height: 5 }), svg("line", { class: "hatch-line", y2: 5 }))));
  for (let block = 0; block < turns - 1; block += 1) {
    for (let from = block + 1; from < turns;) {
      let until = from + 1;
      while (until < turns && states[until][block] === states[from][block]) until += 1;
      root.append(svg("rect", {
        class: `state s-${STATES[states[from][block]]}`, x: x(from) - cell.width / 2, y: y(block) - cell.height / 2,
        width: (until - from) * cell.width + 0.4, height: cell.height + 0.4,
      }));
      from = until;
    }
  }
  root.append(svg("rect", { class: "column", x: x(selected) - cell.width / 2, y: MARGIN.top, width: cell.width, height: height - MARGIN.top - MARGIN.bottom }));
  const label = svg("g", { class: "tip", visibility: "hidden" });
  root.append(label);
  const place = (event) => {
    const box = root.getBoundingClientRect();
    const scale = width / box.width;
    const t = Math.round((((event.clientX - box.left) * scale - x(0)) / Math.max(1, x(turns - 1) - x(0))) * (turns - 1));
    const block = Math.round((((event.clientY - box.top) * scale - y(0)) / Math.max(1, y(turns - 1) - y(0))) * (turns - 1));
    return [Math.min(turns - 1, Math.max(0, t)), Math.max(0, block)];
  };
  root.addEventListener("pointermove", (event) => {
    const [t, block] = place(event);
    const text = block < t ? `block ${block} at turn ${t}: ${STATES[states[t][block]]}` : `turn ${t}`;
    tip(label, [[null, text]], x(t), width);
    label.setAttribute("visibility", "visible");
  });
  root.addEventListener("pointerleave", () => label.setAttribute("visibility", "hidden"));
  root.classList.add("pickable");
  root.addEventListener("click", (event) => onPick(place(event)[0]));
  return root;
}

function ledgerLegend() {
  return el("div", { class: "legend" }, Object.entries(STATES).map(([letter, word]) => el("span", { class: "key" },
    svg("svg", { viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { class: `state s-${word}`, width: 14, height: 14 })),
    `${letter === "." ? "·" : letter} ${word}`)));
}

function ledgerAnswer(run, t) {
  const letters = statesOf(run.turns[t].states);
  const counts = Object.entries(STATES).map(([letter, word]) => [letters.split(letter).length - 1, word]).filter(([count]) => count);
  return `${run.policy} at turn ${t}: ${counts.map(([count, word]) => `${count} ${word}`).join(", ") || "no earlier block"}. Each earlier block is in exactly one state, at every turn.`;
}
