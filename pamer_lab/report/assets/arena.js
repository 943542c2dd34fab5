// Arena: the paper's columns by policy, differences in pairs, and the outcome of every task.

const ARENA_MEASURES = { reward: ["Score", 2], total: ["Tokens", 0], cost: ["Cost", 4], turns: ["Turns", 2] };
const ARENA_MEANS = { success_rate: "reward", total: "total", turns: "turns", repeats: "repeats", cost: "cost", peak_active: "peak_active" };

const arenaRows = (section) => [...section.results, ...Object.values(section.bounds)];

function arenaSection(section, number) {
  const rows = arenaRows(section), n = Math.max(...rows.map((row) => row.n));
  const said = section.simulated ? "Simulated agent; " : "";
  const chart = figure("Score by policy", `${said}success rate with Wilson's 95 % interval; n = ${counted(n, "task")}.`,
    (width) => dotChart(width, rows.map((row) => ({ name: arenaName(row), value: row.success_rate, low: row.ci[0], high: row.ci[1], look: lookOf(row.policy), text: row.success_rate.toFixed(2) })), { digits: 1, label: "Score of each policy" }));
  queueMicrotask(() => chart.redraw());
  return el("section", { id: `s${number}` }, el("h2", { text: "Arena" }),
    el("p", { class: "facts" }, section.simulated ? badge("simulated agent", "estimated", "The agent is a program, not a language model") : badge("agent", "measured"),
      ` ${visible(section.agent)}; ${counted(n, "task")}, level ${visible(section.level)}, seed ${section.seed}; tokens measured with ${visible(section.tokenizer)}, costs simulated at ${visible(section.prices)}. `,
      "The agent acts on the context that each policy gives it."),
    chart.node, arenaTable(rows), arenaPairs(section),
    el("details", { class: "block" }, el("summary", { text: `Outcome of ${counted(section.tasks.length, "episode")}` }), table([
      { title: "Task", number: true, value: (row) => row.task }, { title: "Policy", value: (row) => row.policy },
      { title: "Score", number: true, value: (row) => fixed(row.reward, 2) }, { title: "Ended", value: (row) => row.ended },
      { title: "Turns", number: true, value: (row) => row.turns }, { title: "Tokens", number: true, value: (row) => whole(row.total) },
      { title: "Diverged from base at turn", number: true, value: (row) => row.left_base_at }, { title: "Lost fact", value: (row) => row.lost_fact },
    ], section.tasks)));
}

const arenaName = (row) => row.policy + (row.bound ? " (bound)" : "");

function arenaTable(rows) {
  return el("div", {}, el("h3", { text: "Results by policy" }), table([
    { title: "Policy", value: arenaName }, { title: "Tasks", number: true, value: (row) => row.n },
    { title: "Score", number: true, value: (row) => `${row.success_rate.toFixed(2)} [${row.ci[0].toFixed(2)}, ${row.ci[1].toFixed(2)}]` },
    { title: "Tokens per task", number: true, value: (row) => whole(row.total) },
    { title: "Change", number: true, value: (row) => (row.policy === "base" || row.vs_base_pct === null ? "" : `${signed(row.vs_base_pct, 1)} %`) },
    { title: "Peak", number: true, value: (row) => whole(row.peak_active) }, { title: "Turns", number: true, value: (row) => row.turns.toFixed(1) },
    { title: "Repeats", number: true, value: (row) => row.repeats.toFixed(1) }, { title: "Cost", number: true, value: (row) => fixed(row.cost, 4) },
  ], rows));
}

function arenaPairs(section) {
  const rows = section.pairs.filter((row) => row.measure in ARENA_MEASURES);
  if (!rows.length) return null;
  const value = (row, number) => (typeof number !== "number" ? "none" : row.measure === "total" ? (number > 0 ? "+" : "") + whole(number) : signed(number, ARENA_MEASURES[row.measure][1]));
  return el("div", {}, el("h3", { text: `Differences from ${section.against} on the same tasks` }), table([
    { title: "Policy", value: (row) => row.policy }, { title: "Measure", value: (row) => ARENA_MEASURES[row.measure][0] },
    { title: "Difference", number: true, value: (row) => value(row, row.difference) },
    { title: "95 % interval", number: true, value: (row) => `${value(row, row.ci[0])} to ${value(row, row.ci[1])}` },
    { title: "p (exact sign flip)", number: true, value: (row) => fixed(row.p, 4) }, { title: "Tasks", number: true, value: (row) => row.n },
  ], rows), el("p", { class: "quiet", text: "Intervals are bootstraps over tasks, computed when the report was created." }));
}

function verifyArena(checks, section) {
  const mean = (values) => sum(values) / Math.max(1, values.length), Z2 = 1.959964 ** 2;
  for (const row of arenaRows(section)) {
    const own = section.tasks.filter((entry) => entry.policy === row.policy);
    checks.check("Tasks counted", own.length === row.n, `${row.policy}, tasks`);
    for (const [name, key] of Object.entries(ARENA_MEANS)) {
      if (row[name] !== null) checks.check("Means over tasks", near(mean(own.map((entry) => entry[key])), row[name]), `${row.policy}, ${name}`);
    }
    const middle = (row.success_rate + Z2 / (2 * row.n)) / (1 + Z2 / row.n);
    const half = (Math.sqrt(Z2) * Math.sqrt(row.success_rate * (1 - row.success_rate) / row.n + Z2 / (4 * row.n ** 2))) / (1 + Z2 / row.n);
    checks.check("Wilson's intervals", near(Math.max(0, middle - half), row.ci[0]) && near(Math.min(1, middle + half), row.ci[1]), `${row.policy}, interval`);
  }
  for (const row of section.pairs.filter((entry) => entry.measure in ARENA_MEASURES && entry.difference !== null)) {
    const other = new Map(section.tasks.filter((entry) => entry.policy === row.against).map((entry) => [entry.task, entry]));
    const shared = section.tasks.filter((entry) => entry.policy === row.policy && other.has(entry.task));
    const right = shared.length === row.n && near(mean(shared.map((entry) => entry[row.measure] - other.get(entry.task)[row.measure])), row.difference);
    checks.check("Paired differences", right, `${row.policy}, ${row.measure}`);
  }
}
