// Small SVG charts: lines over turns with bands and event marks, and rows of dots with intervals. Colours come from the style sheet by class.

const MARGIN = { top: 26, right: 16, bottom: 34, left: 56 };

function ticks(largest, count) {
  if (!(largest > 0)) return [0];
  const rough = largest / (count || 5);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let value = 0; value <= largest * 1.0001; value += step) found.push(value);
  return found;
}

// A figure: question, legend, drawing, answer. The drawing follows the width it gets.
function figure(question, answer, draw, legend) {
  const holder = el("div", { class: "drawing" });
  const node = el("figure", {}, el("h3", { text: question }), legend || null, holder, el("figcaption", { text: answer }));
  let width = 0;
  const redraw = () => {
    width = holder.clientWidth || 900;
    holder.replaceChildren(...[draw(Math.max(320, width))].flat());
  };
  new ResizeObserver(() => { if (holder.clientWidth && holder.clientWidth !== width) redraw(); }).observe(holder);
  return { node, redraw };
}

// Grid, axes and their names; returns the drawing and the two scales.
function axes(width, height, options) {
  const { xMin, xMax, yMin, yMax, xTitle, yTitle, yFormat } = options;
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const x = (value) => MARGIN.left + ((value - xMin) / Math.max(1e-9, xMax - xMin)) * inner.width;
  const rise = (value) => ((value - yMin) / Math.max(1e-9, yMax - yMin)) * inner.height;
  const y = (value) => MARGIN.top + (options.yDown ? rise(value) : inner.height - rise(value));
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label || "" });
  const down = options.yTicks || ticks(yMax - yMin).map((value) => value + yMin);
  for (const value of down) {
    root.append(svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }));
    root.append(svg("text", { class: "tick", x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, (yFormat || short)(value)));
  }
  const across = options.xTicks || ticks(xMax, Math.max(3, Math.floor(width / 130))).map((value) => ({ value, text: String(value) }));
  for (const { value, text } of across) {
    root.append(svg("text", { class: "tick", x: x(value), y: height - MARGIN.bottom + 16, "text-anchor": "middle" }, text));
  }
  root.append(svg("text", { class: "axis", x: width - MARGIN.right, y: height - 4, "text-anchor": "end" }, xTitle));
  root.append(svg("text", { class: "axis", x: 4, y: 12 }, yTitle));
  return { root, x, y };
}

const linePath = (points, x, y) => points.map(([a, b], n) => `${n ? "L" : "M"}${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("");

// Triangles and crosses, so that events can be told apart without colour.
function mark(kind, cx, cy, faint) {
  const shapes = {
    compress: `M${cx - 6},${cy - 13}h12l-6,10z`, recall: `M${cx - 4.5},${cy + 11}h9l-4.5,-8z`,
    fallback: `M${cx - 4},${cy - 4}l8,8m0,-8l-8,8`, recorded: `M${cx},${cy - 6}l6,6l-6,6l-6,-6z`,
  };
  return svg("path", { class: `mark ${kind}${faint ? " faint" : ""}`, d: shapes[kind] });
}

/* Lines over turns. `series`: [{name, look, points: [[x, y]], marks: [{x, y, kind}], band: [[x, low, high]]}].
   Hovering reads all lines at the nearest turn; a click or the arrow keys pick one. */
function lineChart(width, options) {
  const height = options.height || 300;
  const shown = options.series.filter((line) => !(options.hidden && options.hidden.has(line.name)));
  const all = shown.flatMap((line) => [...line.points.map((point) => point[1]), ...(line.band || []).map((entry) => entry[2])]);
  const yMin = options.yMin === undefined ? 0 : options.yMin;
  const yMax = options.yMax === undefined ? Math.max(1, ...all, ...(options.lines || []).map((line) => line.value)) * 1.06 : options.yMax;
  const xMax = options.xMax === undefined ? Math.max(1, ...shown.flatMap((line) => line.points.map((point) => point[0]))) : options.xMax;
  const chart = axes(width, height, { xMin: options.xMin || 0, xMax, yMin, yMax, ...options });
  const { root, x, y } = chart;
  for (const line of options.lines || []) {
    root.append(svg("line", { class: "reference", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(line.value), y2: y(line.value) }));
    root.append(svg("text", { class: "tick", x: width - MARGIN.right, y: y(line.value) - 4, "text-anchor": "end" }, line.name));
  }
  if (options.selected !== undefined && options.selected !== null) {
    root.append(svg("line", { class: "selected", x1: x(options.selected), x2: x(options.selected), y1: MARGIN.top, y2: height - MARGIN.bottom }));
  }
  for (const line of shown) {
    if (line.band) {
      const upperEdge = line.band.map(([a, , high]) => [a, high]), lowerEdge = line.band.map(([a, low]) => [a, low]).reverse();
      root.append(svg("path", { class: `band ${line.look}`, d: `${linePath([...upperEdge, ...lowerEdge], x, y)}Z` }));
    }
  }
  for (const line of shown) {
    root.append(svg("path", { class: `line ${line.look}`, d: linePath(line.points, x, y) }));
    if (line.dots) line.points.forEach(([a, b]) => root.append(svg("circle", { class: `dot ${line.look}`, cx: x(a), cy: y(b), r: 3 })));
  }
  const marked = [...shown].sort((one, other) => (one.name === options.open) - (other.name === options.open));
  for (const line of marked) (line.marks || []).forEach((entry) => root.append(mark(entry.kind, x(entry.x), y(entry.y), options.open && line.name !== options.open)));
  hover(chart, width, height, { ...options, series: shown, xMax });
  return root;
}

function hover({ root, x }, width, height, options) {
  const cursor = svg("line", { class: "cursor", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
  const label = svg("g", { class: "tip", visibility: "hidden" });
  root.append(cursor, label);
  const xMin = options.xMin || 0;
  const turnAt = (event) => {
    const box = root.getBoundingClientRect();
    const place = ((event.clientX - box.left) * width) / box.width;
    return Math.min(options.xMax, Math.max(xMin, Math.round(xMin + ((place - MARGIN.left) / (width - MARGIN.left - MARGIN.right)) * (options.xMax - xMin))));
  };
  const leave = () => [cursor, label].forEach((node) => node.setAttribute("visibility", "hidden"));
  root.addEventListener("pointermove", (event) => {
    const t = turnAt(event);
    const lines = options.series.map((line) => [line, line.points.find((point) => point[0] === t)]).filter((pair) => pair[1]);
    if (!lines.length) { leave(); return; }
    cursor.setAttribute("x1", x(t));
    cursor.setAttribute("x2", x(t));
    const rows = [[null, options.xName ? options.xName(t) : `turn ${t}`], ...lines.map(([line, point]) => [line, `${line.name}  ${(options.tipFormat || whole)(point[1])}${line.tip ? line.tip(t) : ""}`])];
    tip(label, rows, x(t), width);
    [cursor, label].forEach((node) => node.setAttribute("visibility", "visible"));
  });
  root.addEventListener("pointerleave", leave);
  if (!options.onPick) return;
  root.classList.add("pickable");
  root.addEventListener("click", (event) => options.onPick(turnAt(event)));
}

function tip(label, rows, at, width) {
  const wide = 18 + 6.7 * Math.max(...rows.map(([, text]) => text.length));
  const left = at + 12 + wide > width ? Math.max(0, at - 12 - wide) : at + 12;
  label.replaceChildren(
    svg("rect", { x: left, y: MARGIN.top, width: wide, height: 12 + 17 * rows.length, rx: 4 }),
    ...rows.flatMap(([line, text], n) => [
      line ? svg("line", { class: `line ${line.look}`, x1: left + 6, x2: left + 14, y1: MARGIN.top + 15 + 17 * n, y2: MARGIN.top + 15 + 17 * n }) : null,
      svg("text", { x: left + (line ? 18 : 8), y: MARGIN.top + 19 + 17 * n, class: line ? "" : "strong" }, text),
    ]).filter(Boolean),
  );
}

// Names with a sample of their line or mark; a click hides or shows one.
function legend(series, hidden, changed) {
  return el("div", { class: "legend" }, series.map((line) => {
    const sample = svg("svg", { viewBox: "0 0 26 10", width: 26, height: 10, "aria-hidden": "true" }, line.sample ? line.sample() : svg("path", { class: `line ${line.look}`, d: "M1,5H25" }));
    const button = el("button", { class: "key", "aria-pressed": "true", title: "Show or hide" }, sample, line.name);
    button.addEventListener("click", () => {
      if (hidden.has(line.name)) hidden.delete(line.name); else hidden.add(line.name);
      button.setAttribute("aria-pressed", String(!hidden.has(line.name)));
      changed();
    });
    return button;
  }));
}

// Rows of dots with intervals: [{name, value, low, high, look}].
function dotChart(width, rows, options) {
  const left = Math.min(380, 20 + 6.6 * Math.max(...rows.map((row) => row.name.length)));
  const values = rows.flatMap((row) => [row.value, row.low, row.high]).filter((value) => typeof value === "number");
  const least = Math.min(...values), high = Math.max(...values);
  const step = ticks(Math.max(1e-9, high - least), 5)[1] || 1, low = Math.floor(least / step) * step;
  const span = Math.max(1e-9, high - low), height = 34 + 20 * rows.length;
  const x = (value) => left + 14 + ((value - low + span * 0.04) / (span * 1.08)) * (width - left - 130);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label || "" });
  for (let value = low; value <= high + step * 0.01; value += step) {
    root.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 4, y2: height - 24 }));
    root.append(svg("text", { class: "tick", x: x(value), y: height - 8, "text-anchor": "middle" }, value.toFixed(options.digits)));
  }
  rows.forEach((row, n) => {
    const cy = 16 + 20 * n;
    root.append(svg("text", { class: "tick", x: left, y: cy + 4, "text-anchor": "end" }, row.name));
    if (typeof row.low === "number") root.append(svg("line", { class: `interval ${row.look}`, x1: x(row.low), x2: x(row.high), y1: cy, y2: cy }));
    root.append(svg("circle", { class: `dot ${row.look}`, cx: x(row.value), cy, r: 4.5 }));
    root.append(svg("text", { class: "tick", x: width - 4, y: cy + 4, "text-anchor": "end" }, row.text));
  });
  return root;
}
