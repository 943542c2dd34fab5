// Studies and published tables: stored rows, means with their seeds, and the paper's numbers marked as published.

const MOST_DOTS = 40;

function studySection(section, number) {
  const { study } = section;
  const targets = [...new Set(study.rows.map((row) => row.target))];
  const draw = { layerwise: layerFigure, compact: shareFigure }[study.kind] || dotFigure;
  const charts = targets.map((target) => draw(study, target));
  queueMicrotask(() => charts.forEach((chart) => chart.redraw()));
  const corpus = study.corpus;
  return el("section", { id: `s${number}` }, el("h2", { text: visible(study.name || study.study_id) }),
    el("p", { class: "facts" }, section.demo ? badge("demo", "demo", "A sample result that comes with PaMER Lab") : null, badge("measured", "measured"),
      ` ${study.model}; ${counted(corpus.questions || 0, "question")}, ${counted(corpus.traces || 0, "trace")}, ${counted(corpus.decision_points || 0, "decision point")}. Created with `, el("code", { text: visible(study.command) }), "."),
    el("div", { class: "columns" }, charts.map((chart) => chart.node)),
    el("details", { class: "block printed", open: study.rows.length <= 40 }, el("summary", { text: `All ${counted(study.rows.length, "row")}` }), studyTable(study)),
    study.comparisons.length ? el("details", { class: "block" }, el("summary", { text: `${counted(study.comparisons.length, "paired comparison")}` }), table([
      { title: "Comparison", value: (row) => row.comparison }, { title: "Target", value: (row) => row.target }, { title: "Metric", value: (row) => row.metric },
      { title: "Difference", number: true, value: (row) => (typeof row.mean === "number" ? `${signed(row.mean, 3)} ± ${fixed(row.sd, 3)} (${row.seeds.length})` : "none") },
      { title: "p (sign flip)", number: true, value: (row) => fixed(row.p, 4) },
    ], study.comparisons)) : null);
}

function layerFigure(study, target) {
  const rows = study.rows.filter((row) => row.target === target && typeof row.mean === "number");
  const layers = [...new Set(rows.map((row) => row.layer))];
  const looks = { last: "pamer", mean: "sliding", "shuffled labels": "base" };
  const lineOf = (row) => (row.kind === "shuffled" ? "shuffled labels" : row.pooling);
  const series = [...new Set(rows.map(lineOf))].map((name) => {
    const own = rows.filter((row) => lineOf(row) === name);
    return {
      name, look: looks[name] || "periodic", points: own.map((row) => [layers.indexOf(row.layer), row.mean]),
      band: own.filter((row) => row.interval).map((row) => [layers.indexOf(row.layer), row.interval[0], row.interval[1]]),
    };
  });
  const low = Math.min(0.5, ...series.flatMap((line) => [...line.points.map((point) => point[1]), ...line.band.map((entry) => entry[1])]));
  const yMin = Math.floor(low * 10) / 10, hidden = new Set();
  const every = Math.max(1, Math.ceil(layers.length / 8));
  const chart = figure(`${upper(target)} AUROC by layer`, `Mean over ${rows[0].seeds.length} splits; bands are 95 % intervals, clustered by question. n = ${whole(rows[0].n)} decisions, base rate ${(100 * rows[0].base_rate).toFixed(1)} %. 0.5 is chance.`,
    (width) => lineChart(width, {
      series, hidden, height: 260, yMin, yMax: 1, yFormat: (value) => value.toFixed(1), tipFormat: (value) => value.toFixed(3), xTitle: "layer", yTitle: "AUROC",
      xName: (place) => layers[place], xMax: Math.max(1, layers.length - 1), lines: [{ value: 0.5, name: "chance" }],
      xTicks: layers.map((layer, value) => ({ value, text: layer.replace("block_", "") })).filter((_, place) => place % every === 0),
      yTicks: Array.from({ length: Math.round((1 - yMin) * 10) + 1 }, (_, n) => yMin + n / 10),
    }), legend(series, hidden, () => chart.redraw()));
  return chart;
}

function dotFigure(study, target) {
  const rows = study.rows.filter((row) => row.target === target && typeof row.mean === "number").slice(0, MOST_DOTS);
  const shown = rows.map((row) => ({
    name: row.name, value: row.mean, low: row.interval ? row.interval[0] : undefined, high: row.interval ? row.interval[1] : undefined,
    look: target === "recall" ? "recall" : "pamer", text: `${fixed(row.mean, 3)} ± ${fixed(row.sd, 3)}`,
  }));
  return figure(`${upper(target || "all")} AUROC by row`, `AUROC, mean over ${rows.length ? rows[0].seeds.length : 0} splits with 95 % interval by question; n = ${rows.length ? whole(rows[0].n) : 0} decisions.`,
    (width) => dotChart(width, shown, { digits: 2, label: `AUROC of each row, ${target}` }));
}

// Token share against AUROC, one point per condition, with labels that do not overlap.
function shareFigure(study, target) {
  const rows = study.rows.filter((row) => row.target === target && typeof row.mean === "number");
  const low = Math.floor(Math.min(0.5, ...rows.map((row) => row.mean)) * 10) / 10;
  const high = Math.min(1, Math.ceil(Math.max(...rows.map((row) => row.mean)) * 10 + 0.2) / 10);
  const most = Math.max(100, ...rows.map((row) => row.tokens_pct));
  return figure(`${upper(target)} AUROC against tokens read`, `AUROC, mean over ${rows.length ? rows[0].seeds.length : 0} splits, against the share of the full context's tokens; n = ${rows.length ? whole(rows[0].n) : 0} decisions. Up and left is better.`, (width) => {
    const { root, x, y } = axes(width, 380, {
      xMin: 0, xMax: most * 1.25, yMin: low, yMax: high, xTitle: "tokens, % of the full context", yTitle: "AUROC", yFormat: (value) => value.toFixed(2), label: "AUROC against token share",
    });
    const taken = [];
    for (const row of [...rows].sort((one, other) => other.mean - one.mean)) {
      const cx = x(row.tokens_pct), cy = y(row.mean), wide = 6.2 * row.name.length;
      let at = cy + 4;
      while (taken.some((box) => Math.abs(box.y - at) < 12 && cx + 8 < box.x + box.wide && box.x < cx + 8 + wide)) at += 4;
      taken.push({ x: cx + 8, y: at, wide });
      root.append(svg("circle", { class: `dot ${target === "recall" ? "recall" : "pamer"}`, cx, cy, r: 4 }, svg("title", {}, `${row.name}: ${fixed(row.mean, 3)} ± ${fixed(row.sd, 3)}, ${row.tokens_pct.toFixed(1)} % of the tokens`)));
      root.append(svg("text", { class: "tick", x: cx + 8, y: at }, row.name));
    }
    return root;
  });
}

function studyTable(study) {
  const some = (name) => study.rows.some((row) => typeof row[name] === "number");
  return table([
    ...(study.rows.some((row) => row.group) ? [{ title: "Group", value: (row) => row.group || "" }] : []),
    { title: "Row", value: (row) => row.name },
    { title: "Target", value: (row) => row.target },
    { title: "AUROC", number: true, value: (row) => (typeof row.mean === "number" ? `${fixed(row.mean, 3)} ± ${fixed(row.sd, 3)} (${row.seeds.length})` : "none") },
    { title: "95 % interval", number: true, value: (row) => (row.interval ? `${fixed(row.interval[0], 3)} to ${fixed(row.interval[1], 3)}` : "") },
    ...(some("tokens_pct") ? [{ title: "Tokens", number: true, hint: "Share of the full context's tokens", value: (row) => `${fixed(row.tokens_pct, 1)} %` }] : []),
    ...(study.rows.some((row) => row.agreement) ? [{ title: "Agreement", number: true, hint: "With the Full Context teacher", value: (row) => (row.agreement ? fixed(row.agreement.mean, 3) : "") }] : []),
    { title: "n", number: true, value: (row) => row.n },
  ], study.rows);
}

function publishedSection(section, number) {
  const cell = (row, column) => {
    const value = row[column.key];
    if (typeof value !== "number") return value === undefined || value === null ? "" : visible(String(value));
    let text = column.digits === null ? value.toLocaleString("en-US") : value.toFixed(column.digits);
    if (typeof row[`${column.key}_sd`] === "number") text += ` ± ${row[`${column.key}_sd`].toFixed(column.digits === null ? 3 : column.digits)}`;
    if (typeof row[`${column.key}_change`] === "number") text += ` (${signed(row[`${column.key}_change`], 1)})`;
    if (typeof row[`${column.key}_change_pct`] === "number") text += ` (${signed(row[`${column.key}_change_pct`], 1)} %)`;
    return text;
  };
  const grouped = section.rows.some((row) => row.group);
  const columns = section.columns.map((column) => ({ title: column.title + (column.unit && column.unit !== column.title ? `, ${column.unit}` : ""), number: section.rows.some((row) => typeof row[column.key] === "number"), value: (row) => cell(row, column) }));
  const scored = section.columns.filter((column) => column.better && section.rows.every((row) => typeof row[column.key] === "number"));
  const charts = scored.slice(-2).map((column) => figure(column.title, `${column.better === "up" ? "Higher" : "Lower"} is better. Published, ${section.place}; n = ${counted(section.rows.length, "row")}.`,
    (width) => dotChart(width, section.rows.slice(0, MOST_DOTS).map((row) => ({ name: [row.group, row.label, row.pooling].filter(Boolean).join(" · "), value: row[column.key], look: publishedLook(row.label), text: cell(row, column) })), { digits: column.digits === null ? 0 : Math.min(2, column.digits) })));
  queueMicrotask(() => charts.forEach((chart) => chart.redraw()));
  return el("section", { id: `s${number}` }, el("h2", { text: section.title }),
    el("p", { class: "facts" }, badge("published", "published", "Numbers reported in the paper"), ` ${section.caption} Published by the paper's authors (${section.place}); not measured here.`),
    el("div", { class: "columns" }, charts.map((chart) => chart.node)),
    table([...(grouped ? [{ title: "Group", value: (row) => row.group || "" }] : []), ...columns], section.rows), section.note ? el("p", { class: "quiet", text: section.note }) : null);
}

function publishedLook(label) {
  if (/PaMER\+/.test(label || "")) return "plus";
  return /PaMER/.test(label || "") ? "pamer" : "base";
}
