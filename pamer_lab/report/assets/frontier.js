// Cost against evidence: a point per policy, steps along the Pareto frontier, and the cheapest policy at each level of evidence.

const MANY = 8; // with more points, only those on the frontier are labelled
const COSTS = [0.1, 3], LEAST_COST = 0.001; // minimum range of the cost axis, and where a cost of zero is drawn
const COST_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100];
const LETTER = 6.4, LINE = 14, AROUND = 8, REACH = 24; // pixels: a letter, a line, half a mark plus a margin, how close the pointer must be to a mark

// Shapes around (0, 0), so that policies of one colour differ.
const ring = (corners, ...radii) => `M${Array.from({ length: corners }, (_, n) => {
  const angle = (2 * Math.PI * n) / corners, radius = radii[n % radii.length];
  return `${(radius * Math.sin(angle)).toFixed(2)},${(-radius * Math.cos(angle)).toFixed(2)}`;
}).join("L")}Z`;
const SHAPES = [ring(24, 5), "M-4.5,-4.5h9v9h-9z", ring(4, 6.4), "M-1.8,-5.5h3.6v3.7h3.7v3.6h-3.7v3.7h-3.6v-3.7h-3.7v-3.6h3.7z", ring(10, 6.6, 2.8), ring(6, 5.6), ring(5, 5.8)];
const dot = (point, x, y) => svg("path", { class: `dot ${point.look}`, d: point.shape, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})` });

function frontierPart(section) {
  const found = section.frontier;
  const points = (found ? found.points : []).filter((point) => point.evidence_pct !== null);
  if (!points.length) return null;
  const hidden = new Set(), many = points.length > MANY;
  const shaped = points.map((point) => ({ ...point, look: lookOf(point.policy) }));
  shaped.forEach((point, n) => { point.shape = SHAPES[shaped.slice(0, n).filter((other) => other.look === point.look).length % SHAPES.length]; });
  const keys = shaped.map((point) => ({ name: point.policy, look: point.look, sample: () => dot(point, 13, 5) }));
  const chart = figure("Evidence in context against cost",
    `Simulated with the prices of ${found.prices.name} (${[found.prices.date || "no date", found.prices.source].join("; ")})${found.untimed ? `; ${found.untimed}` : ""}; n = ${counted(found.traces, "trace")}. The line is the Pareto frontier of cost and evidence${many ? "; only its policies are labelled and have intervals" : ""}. Hover over a mark for all figures. Actions are fixed.`,
    (width) => frontierChart(width, shaped, hidden), legend(keys, hidden, () => chart.redraw()));
  queueMicrotask(() => chart.redraw());
  const range = (low, high, digits) => (found.traces > 1 && low !== null ? ` [${low.toFixed(digits)}, ${high.toFixed(digits)}]` : "");
  return el("div", {}, chart.node, table([
    { title: "Policy", value: (row) => row.policy + (row.frontier ? " ◆" : "") },
    { title: "Cost vs base", number: true, value: (row) => row.cost_vs_base.toFixed(2) + range(row.cost_low, row.cost_high, 2) },
    { title: "Evidence in context", number: true, value: (row) => `${row.evidence_pct.toFixed(1)} %${range(row.evidence_low, row.evidence_high, 1)}` },
    { title: "Tokens vs base", number: true, value: (row) => fixed(row.tokens_vs_base, 2) },
    { title: "Mean peak", number: true, value: (row) => short(row.mean_peak) },
    { title: "Uncached input", number: true, value: (row) => `${(100 * row.uncached_share).toFixed(1)} %` },
  ], points), table([
    { title: "Minimum evidence", value: (row) => `${row.level} %` },
    { title: "Cheapest policy", value: (row) => row.policy || "none" },
    { title: "Cost vs base", number: true, value: (row) => (row.policy ? row.cost_vs_base.toFixed(2) + range(row.cost_low, row.cost_high, 2) : "") },
  ], found.cheapest), ...equalTokens(found.equal_tokens), el("p", { class: "quiet", text: "◆ on the Pareto frontier of cost and evidence. Intervals are 95 % bootstraps over tasks." }));
}

// Each policy against a sliding window or a periodic summary that uses the same number of tokens.
function equalTokens(rows) {
  if (!rows.length) return [];
  const signed = (value, digits) => (value < 0 ? "" : "+") + value.toFixed(digits);
  const range = (row, unit, digits) => signed(row[`${unit}_difference`], digits) + (row.tasks > 1 && row[`${unit}_low`] !== null ? ` [${signed(row[`${unit}_low`], digits)}, ${signed(row[`${unit}_high`], digits)}]` : "");
  return [el("h4", { text: "At equal tokens" }), table([
    { title: "Policy", value: (row) => row.policy },
    { title: "Tokens vs base", number: true, value: (row) => row.tokens_vs_base.toFixed(2) },
    { title: "Against", value: (row) => row.yardstick },
    { title: "Evidence difference, points", number: true, value: (row) => (row.evidence_difference === null ? "outside the range of sizes" : range(row, "evidence", 1)) },
    { title: "Cost difference, × base", number: true, value: (row) => (row.cost_difference === null ? "" : range(row, "cost", 2)) },
  ], rows)];
}

function frontierChart(width, points, hidden) {
  const height = points.length > MANY ? 460 : 320, shown = points.filter((point) => !hidden.has(point.policy));
  const best = points.filter((point) => point.frontier).sort((one, other) => one.cost_vs_base - other.cost_vs_base || one.evidence_pct - other.evidence_pct);
  const named = points.length > MANY ? shown.filter((point) => point.frontier) : shown;
  const barred = named.filter((point) => point.traces > 1);
  const costs = points.map((point) => Math.max(point.cost_vs_base, LEAST_COST));
  const low = Math.min(0.9 * Math.min(...costs), COSTS[0]), high = Math.max(1.1 * Math.max(...costs), COSTS[1]);
  const levels = [...points.map((point) => point.evidence_pct), ...barred.flatMap((point) => [point.evidence_low, point.evidence_high])].filter((level) => level !== null);
  const least = Math.min(...levels), most = Math.max(...levels), room = (most - least || 10) / 12;
  const step = ticks(most - least + 2 * room)[1], yTicks = [];
  for (let level = Math.ceil((least - room) / step) * step; level <= Math.min(100, most + room); level += step) yTicks.push(level);
  const chart = axes(width, height, {
    xMin: Math.log10(low), xMax: Math.log10(high), yMin: least - room, yMax: most + room, yTicks, yFormat: (value) => value.toFixed(step < 1 ? 1 : 0),
    xTicks: COST_TICKS.filter((value) => low <= value && value <= high).map((value) => ({ value: Math.log10(value), text: String(value) })),
    xTitle: "cost relative to the base agent (logarithmic)", yTitle: "evidence in context (%)", label: "Evidence in context against cost, by policy",
  });
  const { root, y } = chart, x = (cost) => chart.x(Math.log10(Math.max(cost, LEAST_COST)));
  const at = (point) => [x(point.cost_vs_base), y(point.evidence_pct)];
  const lines = [["reference faint", x(1), MARGIN.top, x(1), height - MARGIN.bottom]];
  best.slice(1).forEach((point, n) => {
    const [left, before] = at(best[n]), [right, after] = at(point);
    lines.push(["steps-line", left, before, right, before], ["steps-line", right, before, right, after]);
  });
  for (const point of barred) {
    const [across, up] = at(point);
    if (point.cost_low !== null) lines.push(["interval", x(point.cost_low), up, x(point.cost_high), up]);
    if (point.evidence_low !== null) lines.push(["interval", across, y(point.evidence_low), across, y(point.evidence_high)]);
  }
  root.append(...lines.map(([kind, x1, y1, x2, y2]) => svg("line", { class: kind, x1, y1, x2, y2 })));
  root.append(svg("text", { class: "tick", x: x(1) + 5, y: height - MARGIN.bottom - 5 }, "base"));
  const marks = shown.map((point) => ({ point, place: at(point) }));
  root.append(...marks.map(({ point, place }) => dot(point, ...place)));
  const frame = [MARGIN.left, MARGIN.top - LINE, width, height - MARGIN.bottom];
  root.append(...placedLabels(labelsOf(named, at), marks.map((entry) => entry.place), lines, frame));
  frontierHover(root, width, marks);
  return root;
}

// Policies at the same place share the label of the first, which is the base agent if it is there.
function labelsOf(points, at) {
  const together = new Map();
  for (const point of [...points].sort((one, other) => (one.policy !== "base") - (other.policy !== "base"))) {
    const place = `${point.cost_vs_base.toFixed(3)} ${point.evidence_pct.toFixed(1)}`;
    if (!together.has(place)) together.set(place, { place: at(point), names: [] });
    together.get(place).names.push(point.policy);
  }
  return [...together.values()].map(({ place, names }) => ({ place, text: names.length > 1 ? `${names[0]} and ${names.length - 1} more` : names[0] }));
}

// Each label takes the side of its mark where it covers least of marks, lines and earlier labels; those in a crowd choose first.
function placedLabels(labels, marks, lines, frame) {
  const around = ([x, y], size) => [x - size, y - size, x + size, y + size];
  const shared = (one, other) => Math.max(0, Math.min(one[2], other[2]) - Math.max(one[0], other[0])) * Math.max(0, Math.min(one[3], other[3]) - Math.max(one[1], other[1]));
  const taken = [...marks.map((place) => around(place, AROUND - 1)), ...lines.map(([, x1, y1, x2, y2]) => [Math.min(x1, x2) - 2, Math.min(y1, y2) - 2, Math.max(x1, x2) + 2, Math.max(y1, y2) + 2])];
  const crowd = ({ place: [x, y] }) => labels.filter(({ place: [a, b] }) => Math.abs(a - x) < 90 && Math.abs(b - y) < 30).length;
  return [...labels].sort((one, other) => crowd(other) - crowd(one)).map(({ place: [x, y], text }) => {
    const wide = LETTER * text.length;
    const sides = [[0, -1], [0, 1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1]].map(([across, down]) => {
      const left = across ? x + across * AROUND - (across < 0 ? wide : 0) : x - wide / 2;
      const top = down ? y + down * AROUND - (down < 0 ? LINE : 0) : y - LINE / 2;
      const box = [left, top, left + wide, top + LINE];
      return { box, cost: Math.round(sum(taken.map((other) => shared(box, other))) + wide * LINE - shared(box, frame)) };
    });
    const { box } = sides.reduce((found, side) => (side.cost < found.cost ? side : found));
    taken.push(box);
    return svg("text", { class: "tick", x: (box[0] + box[2]) / 2, y: box[3] - 3, "text-anchor": "middle" }, text);
  });
}

// The figures of the nearest policy, and of every other at the same place.
function frontierHover(root, width, marks) {
  const label = svg("g", { class: "tip", visibility: "hidden" });
  root.append(label);
  const leave = () => label.setAttribute("visibility", "hidden");
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect(), scale = width / box.width;
    const pointer = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    const away = (one, other) => Math.hypot(one[0] - other[0], one[1] - other[1]);
    const [nearest] = [...marks].sort((one, other) => away(one.place, pointer) - away(other.place, pointer));
    if (!nearest || away(nearest.place, pointer) > REACH) { leave(); return; }
    const here = marks.filter((entry) => away(entry.place, nearest.place) < 3);
    tip(label, here.map(({ point }) => [point, `${point.policy}: ${point.cost_vs_base.toFixed(2)} of base, ${point.evidence_pct.toFixed(1)} % evidence, tokens ${fixed(point.tokens_vs_base, 2)} of base, mean peak ${short(point.mean_peak)}, ${(100 * point.uncached_share).toFixed(0)} % of input uncached or written`]), nearest.place[0], width);
    label.setAttribute("visibility", "visible");
  });
  root.addEventListener("pointerleave", leave);
}
