// Context growth: the mean context per turn over the traces still running, and totals by policy.

function growthSection(section, number) {
  const hidden = new Set();
  const policies = [...new Set(section.means.map((row) => row.policy))];
  const series = policies.map((policy) => {
    const rows = section.means.filter((row) => row.policy === policy);
    const running = new Map(rows.map((row) => [row.t, row.running]));
    return {
      name: policy, look: lookOf(policy), points: rows.map((row) => [row.t, row.mean_active]), band: rows.map((row) => [row.t, row.low, row.high]),
      tip: (t) => `  (n = ${running.get(t)})`,
    };
  });
  const largest = Math.max(...section.means.map((row) => row.mean_active));
  const lines = largest * 4 >= section.reference ? [{ value: section.reference, name: "128K (reference)" }] : [];
  const kinds = [...new Set(section.runs.map((run) => `${run.tokens_kind} with ${run.tokenizer}`))].join("; ");
  const peaks = section.policies.map((row) => `${row.policy} ${short(row.mean_peak)}`).join(", ");
  const means = figure("Mean context size per turn",
    `Mean peak: ${peaks} tokens; n = ${counted(section.traces.length, "trace")}, ${kinds}. The band covers 80 % of the traces; means are over the traces still running. Actions are fixed.`,
    (width) => lineChart(width, { series, hidden, lines, xTitle: "turn", yTitle: "tokens", label: "Mean tokens of the request over turns, by policy" }),
    legend(series, hidden, () => means.redraw()));
  const first = series[0];
  const running = figure("Traces still running", "Means at late turns are over few traces.", (width) => lineChart(width, {
    height: 120, xTitle: "turn", yTitle: "traces", yFormat: (value) => (Number.isInteger(value) ? String(value) : ""),
    series: [{ name: "traces", look: "base", points: section.means.filter((row) => row.policy === first.name).map((row) => [row.t, row.running]) }],
  }));
  queueMicrotask(() => { means.redraw(); running.redraw(); });
  return el("section", { id: `s${number}` }, el("h2", { text: "Context growth" }),
    el("p", { class: "facts" }, section.traces.some((trace) => trace.demo) ? badge("demo", "demo") : null, badge(section.traces[0] ? section.traces[0].tokens_kind : "", "measured"), ` ${counted(section.traces.length, "trace")}, ${counted(section.runs.length, "run")}.`),
    el("p", { class: "caveat", text: data("about").fixed_actions }), means.node, running.node, growthTable(section), frontierPart(section),
    el("details", { class: "block" }, el("summary", { text: "The traces" }), table([
      { title: "Trace", value: (trace) => visible(trace.name || trace.trace_id) }, { title: "Id", value: (trace) => trace.trace_id },
      { title: "Turns", number: true, value: (trace) => trace.turns }, { title: "Tokenizer", value: (trace) => trace.tokenizer },
    ], section.traces)));
}

function growthTable(section) {
  const base = section.policies.find((row) => row.policy === section.baseline) || section.policies[0];
  const costs = new Map((section.frontier ? section.frontier.points : []).map((point) => [point.policy, point.cost_vs_base]));
  const against = (row, name) => (row === base ? "baseline" : change(100 * (row[name] / Math.max(1, base[name]) - 1), costs.get(row.policy) / costs.get(base.policy)));
  return el("div", {}, el("h3", { text: "Totals by policy" }), table([
    { title: "Policy", value: (row) => row.policy },
    { title: "Traces", number: true, value: (row) => row.traces },
    { title: "Mean total", number: true, value: (row) => short(row.mean_total) },
    { title: `Total vs ${base.policy}`, number: true, value: (row) => against(row, "mean_total") },
    { title: "Mean peak", number: true, value: (row) => short(row.mean_peak) },
    { title: `Peak vs ${base.policy}`, number: true, value: (row) => against(row, "mean_peak") },
    { title: "Reduction against raw", number: true, value: (row) => `${row.reduction_pct.toFixed(1)} % [${row.reduction_low.toFixed(1)}, ${row.reduction_high.toFixed(1)}]` },
    { title: "Auxiliary", number: true, value: (row) => short(row.aux_input + row.aux_output) },
    { title: "Cached input", number: true, value: (row) => `${((100 * row.cached_input) / Math.max(1, row.main_input)).toFixed(1)} %` },
  ], section.policies), el("p", { class: "quiet", text: `▼ fewer, ▲ more than the baseline. ${COLOURED} The interval of the reduction is a 95 % bootstrap, clustered by task, computed when the report was created.` }));
}
