// Recomputes everything that can be derived from the embedded data and compares it with the file's own numbers.

const NEAR = 1e-6;
const near = (one, other, tolerance) => Math.abs(one - other) <= (tolerance || NEAR) * Math.max(1, Math.abs(one), Math.abs(other));

class Checks {
  constructor() { this.groups = new Map(); }

  // One comparison; `what` names it where it fails.
  check(group, right, what) {
    if (!this.groups.has(group)) this.groups.set(group, { checked: 0, failed: [] });
    const entry = this.groups.get(group);
    entry.checked += 1;
    if (!right) entry.failed.push(what);
  }

  get checked() { return sum([...this.groups.values()].map((entry) => entry.checked)); }
  get failed() { return [...this.groups.values()].flatMap((entry) => entry.failed); }
}

function verifyFile(checks) {
  const manifest = data("manifest");
  for (const [name, stated] of Object.entries(manifest.sha256)) {
    checks.check("Data elements match their SHA-256", sha256(document.getElementById(name).textContent) === stated, `data element "${name}"`);
  }
  for (const [name, text] of Object.entries(data("texts"))) {
    checks.check("Texts match their SHA-256", sha256(text).slice(0, 24) === name, `text ${name}`);
  }
}

function verifyReplay(checks, section) {
  const { trace } = section;
  const cumulative = [0];
  for (const block of trace.blocks) cumulative.push(cumulative[cumulative.length - 1] + block.tokens);
  for (const run of section.runs) {
    for (const turn of run.turns) {
      const place = `${run.policy}, turn ${turn.t}`;
      checks.check("Context items sum to the plotted tokens", tokensRight(turn, trace, cumulative), place);
      checks.check("Raw request recounted", turn.raw === trace.tools_tokens + trace.prefix_tokens + cumulative[turn.t], place);
      checks.check("Every earlier block in exactly one state", lettersOf(turn) === statesOf(turn.states), place);
      if (turn.logits) checks.check("Votes from logits and thresholds", votesRight(turn), place);
      const rule = run.settings.rule;
      if (rule && turn.logits && turn.action !== "fallback") checks.check("Decision from votes and candidate", decisionRight(turn, rule, run, trace), place);
    }
    verifyTotals(checks, run);
    for (const memory of run.memories) {
      const right = memory.tokens === sum(memory.steps.map((step) => step.tokens)) && memory.steps.every((step) => step.tokens === trace.blocks[step.step].tokens);
      checks.check("Memories recounted from their steps", right, `${run.policy}, memory ${memory.sequence}`);
    }
  }
  for (const row of section.selections) checks.check("Selected steps recounted", selectionRight(row, section), `selection at turn ${row.turn}`);
}

function tokensRight(turn, trace, cumulative) {
  const counts = { tools: trace.tools_tokens, prefix: trace.prefix_tokens };
  const parts = turn.items.every((item) => {
    if (item.kind === "blocks") return item.tokens === sum(item.spans.map(([a, b]) => cumulative[b] - cumulative[a]));
    return !(item.kind in counts) || item.tokens === counts[item.kind];
  });
  return parts && sum(turn.items.map((item) => item.tokens)) === turn.active && turn.output === trace.blocks[turn.t].output;
}

// The ledger's rule: active before restored before recalled before summarised before absent.
function lettersOf(turn) {
  const letters = new Array(turn.t).fill(".");
  const paint = (letter, spans) => spanBlocks(spans).forEach((block) => { letters[block] = letter; });
  const spans = (kind) => turn.items.filter((item) => item.kind === kind).flatMap((item) => item.spans || []);
  paint("S", turn.stored);
  for (const [letter, kind] of [["S", "summary"], ["S", "edited"], ["R", "recalled"], ["X", "evidence"], ["A", "blocks"]]) paint(letter, spans(kind));
  return letters.join("");
}

const sigmoid = (value) => (value >= 0 ? 1 / (1 + Math.exp(-value)) : Math.exp(value) / (1 + Math.exp(value)));
const votesRight = (turn) => turn.votes.length === turn.logits.length
  && turn.logits.every((value, head) => (sigmoid(value) >= turn.thresholds[head]) === turn.votes[head]);

function decisionRight(turn, rule, run, trace) {
  const wanted = turn.votes.filter(Boolean).length >= rule.vote && turn.candidate > 0 && turn.candidate >= rule.minimum;
  if (!wanted || !rule.gate) return wanted === (turn.action === "compress");
  return gateRight(turn, rule, run, trace);
}

// The priced gate: an edit pays back in time, or the cache is cold, or the window is nearly full.
function gateRight(turn, rule, run, trace) {
  const { read, write, lifetime, horizon, window: size } = rule.gate;
  const edited = turn.action === "compress";
  const stays = sum(turn.items.filter((item) => item.kind === "blocks").map((item) => item.tokens)) - (edited ? 0 : turn.candidate);
  if (edited && !run.memories.some((memory) => turn.memory_ids.includes(memory.memory_id) && memory.tokens === turn.candidate)) return true;
  const extra = (write - read) * stays, saved = read * turn.candidate;
  const turns = extra <= saved ? 0 : saved ? extra / saved - 1 : Infinity;
  const idle = run.times.length > turn.t && turn.t ? run.times[turn.t] - run.times[turn.t - 1] : null;
  const cold = !lifetime || (idle !== null && idle > lifetime);
  const before = run.turns.slice(0, turn.t).filter((other) => other.action !== "fallback").pop();
  const held = rule.inject === "append" && before ? sum(before.items.filter((item) => item.text !== undefined).map((item) => item.tokens)) : 0;
  const request = trace.tools_tokens + trace.prefix_tokens + stays + turn.candidate + held;
  return edited === (cold || (size > 0 && request >= 0.9 * size) || turns <= horizon);
}

function verifyTotals(checks, run) {
  const stated = run.totals;
  if (!("total" in stated)) return;
  const of = (name) => sum(run.turns.map((turn) => turn[name]));
  const spent = run.turns.flatMap((turn) => turn.spent || []).filter((entry) => !entry.local);
  const main = of("active"), output = of("output"), base = of("raw") + output, cached = of("cached");
  const auxIn = sum(spent.map((entry) => entry.input_tokens)), auxOut = sum(spent.map((entry) => entry.output_tokens || 0));
  const total = main + output + auxIn + auxOut;
  const again = {
    main_input: main, main_output: output, aux_input: auxIn, aux_output: auxOut, total, base_total: base, cached_input: cached,
    uncached_input: main - cached, peak_active: Math.max(0, ...run.turns.map((turn) => turn.active)),
  };
  for (const [name, value] of Object.entries(again)) checks.check("Token totals", value === stated[name], `${run.policy}, ${name.replace("_", " ")}`);
  checks.check("Reductions", near(base ? 100 * (1 - total / base) : 0, stated.reduction_pct), `${run.policy}, reduction`);
  for (const [name, count] of Object.entries(stated.actions || {})) {
    checks.check("Actions counted", run.turns.filter((turn) => turn.action === name).length === count, `${run.policy}, turns that ${name}`);
  }
}

function selectionRight(row, section) {
  if (!row.chosen_tokens) return true;
  const run = section.runs.find((other) => other.run_id === row.run_id);
  const memories = run ? run.memories.filter((memory) => row.summary_ids.includes(memory.memory_id)) : [];
  const covered = new Set(memories.flatMap((memory) => memory.steps.map((step) => step.step)));
  return row.chosen_tokens === sum(row.steps.map((step) => section.trace.blocks[step].tokens))
    && row.covered_tokens === sum(memories.map((memory) => memory.tokens))
    && row.steps.every((step) => covered.has(step)) && row.cited_steps.every((step) => row.steps.includes(step));
}

function verifyGrowth(checks, section) {
  const at = new Map();
  for (const run of section.runs) {
    run.active.forEach((tokens, t) => {
      const key = `${run.policy} ${t}`;
      if (!at.has(key)) at.set(key, []);
      at.get(key).push(tokens);
    });
  }
  for (const row of section.means) {
    const values = at.get(`${row.policy} ${row.t}`) || [];
    const right = values.length === row.running && near(sum(values) / Math.max(1, values.length), row.mean_active);
    checks.check("Mean context over the traces still running", right, `${row.policy}, turn ${row.t}`);
  }
  for (const row of section.policies) {
    const runs = section.runs.filter((run) => run.policy === row.policy);
    const total = sum(runs.map((run) => run.total)), base = sum(runs.map((run) => run.base_total));
    checks.check("Totals over traces", total === row.total && base === row.base_total && runs.length === row.traces, `${row.policy}, totals`);
    checks.check("Reductions", near(100 * (1 - total / Math.max(1, base)), row.reduction_pct), `${row.policy}, reduction over traces`);
  }
}

function verifyStudy(checks, section) {
  for (const row of section.study.rows) {
    for (const [name, metric] of Object.entries(row.metrics || {})) {
      if (!metric || !Array.isArray(metric.seeds) || typeof metric.mean !== "number" || !metric.seeds.every((value) => typeof value === "number")) continue;
      const mean = sum(metric.seeds) / metric.seeds.length;
      const squares = sum(metric.seeds.map((value) => (value - mean) ** 2));
      const sd = metric.seeds.length > 1 ? Math.sqrt(squares / (metric.seeds.length - 1)) : 0;
      const right = near(mean, metric.mean, 3e-6) && (typeof metric.sd !== "number" || near(sd, metric.sd, 3e-6));
      checks.check("Study means and deviations from their seeds", right, `${row.name}, ${row.target || ""} ${name}`);
    }
  }
}

function verifyAll(sections) {
  const checks = new Checks();
  const guarded = (name, work) => {
    try { work(); } catch (error) { checks.check("Data is well-formed", false, `${name} (${error.message})`); }
  };
  guarded("file", () => verifyFile(checks));
  sections.forEach((section, number) => guarded(`section ${number + 1}`, () => {
    if (section.kind === "replay") verifyReplay(checks, section);
    if (section.kind === "growth") verifyGrowth(checks, section);
    if (section.kind === "study") verifyStudy(checks, section);
    if (section.kind === "arena") verifyArena(checks, section);
  }));
  return checks;
}
