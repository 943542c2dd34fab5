// A replay section: one trace, its policies, and the open turn; or the trace alone.

function replaySection(section, number) {
  const node = el("section", { id: `s${number}` });
  if (!section.runs.length) return transcriptSection(section, node);
  const state = startOf(section, number);
  const hidden = new Set();
  const series = contextSeries(section);
  const pick = (t) => { state.t = Math.min(t, run().turns.length - 1); update(); };
  const run = () => section.runs[state.run];
  const head = section.runs[0];
  const context = figure("Context size per turn", contextAnswer(section),
    (width) => lineChart(width, { series, hidden, selected: state.t, open: run().policy, onPick: pick, xTitle: "turn", yTitle: "tokens", label: "Tokens of the request over turns, by policy" }),
    legend(series, hidden, () => context.redraw()));
  const blocks = figure("Where is each block?", "", (width) => ledgerChart(width, run(), Math.min(state.t, run().turns.length - 1), pick), ledgerLegend());
  const panel = el("div", { class: "inspector" }), steps = el("div", { class: "steps" });
  state.redraw = () => update();
  const line = el("p", { class: "lead headline" });
  function update() {
    const current = run(), turn = current.turns[state.t];
    line.replaceChildren(...headline(current));
    steps.replaceChildren(...stepButtons(section, state, update));
    panel.replaceChildren(el("div", { class: "columns wide" }, whyPanel(current, turn), el("div", {}, contextPanel(current, turn, section.trace, state), memoryPanel(current, turn))));
    blocks.node.querySelector("figcaption").textContent = visible(ledgerAnswer(current, state.t));
    context.redraw();
    blocks.redraw();
    remember(number, current.policy, state.t);
  }
  const opener = { open: (id, t) => { state.run = section.runs.findIndex((other) => other.run_id === id); pick(t); steps.scrollIntoView(); } };
  const audit = section.selections.length ? el("div", {}, el("h3", { text: "Evidence restored by PaMER+" }),
    el("p", { class: "quiet", text: auditAnswer(section) }), auditPanel(section, opener)) : null;
  node.append(el("h2", { text: `Replay of ${visible(section.trace.name || section.trace.trace_id)}` }), line, facts(section), el("p", { class: "caveat", text: data("about").fixed_actions }),
    policyTable(section, (place) => { state.run = place; pick(state.t); }), ...(section.focus === "audit" && audit ? [audit] : []),
    context.node, blocks.node, el("h3", { text: "Selected turn" }), steps, panel, eventsPanel(section, opener),
    ...(section.focus !== "audit" && audit ? [audit] : []), blocksPanel(section.trace, head));
  steps.addEventListener("turn", (event) => pick(event.detail));
  document.addEventListener("keydown", (event) => keys(event, section, state, pick));
  queueMicrotask(update);
  return node;
}

function startOf(section, number) {
  const active = section.runs.map((run) => run.turns.filter((turn) => turn.action !== "pass").length);
  const asked = /^#s(\d+)\/([^/]+)\/(\d+)$/.exec(decodeURIComponent(location.hash));
  const policy = asked && Number(asked[1]) === number ? asked[2] : section.open.policy;
  const named = section.runs.findIndex((run) => run.policy === policy);
  const place = named >= 0 ? named : active.indexOf(Math.max(...active));
  const turns = section.runs[place].turns;
  const first = turns.find((turn) => turn.action !== "pass");
  const t = asked && Number(asked[1]) === number ? Number(asked[3]) : section.open.turn ?? (first ? first.t : 0);
  return { run: place, t: Math.max(0, Math.min(t, turns.length - 1)), leftOut: false };
}

function remember(number, policy, t) {
  try { history.replaceState(null, "", `#s${number}/${encodeURIComponent(policy)}/${t}`); } catch { /* a file may not keep an address */ }
}

function keys(event, section, state, pick) {
  if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  const ahead = event.key === "ArrowRight", turns = section.runs[state.run].turns;
  if (!event.shiftKey) { pick(Math.max(0, Math.min(turns.length - 1, state.t + (ahead ? 1 : -1)))); return; }
  const next = nextEvent(turns, state.t, ahead);
  if (next) pick(next.t);
}

function nextEvent(turns, t, ahead) {
  const events = turns.filter((turn) => turn.action !== "pass" && (ahead ? turn.t > t : turn.t < t));
  return ahead ? events[0] : events[events.length - 1];
}

function stepButtons(section, state, update) {
  const run = section.runs[state.run], turns = run.turns;
  const button = (text, hint, target) => el("button", { class: "step", title: hint, disabled: target === undefined || target === null, text, onclick: () => { state.t = target; update(); } });
  const before = nextEvent(turns, state.t, false), after = nextEvent(turns, state.t, true);
  const number = el("input", { type: "number", min: 0, max: turns.length - 1, value: state.t, "aria-label": "Turn", onchange: (event) => {
    state.t = Math.max(0, Math.min(turns.length - 1, Math.round(Number(event.target.value) || 0)));
    update();
  } });
  const policies = el("div", { class: "choices", role: "group", "aria-label": "Policy" }, section.runs.map((other, place) => el("button", {
    class: `choice ${lookOf(other.policy)}`, "aria-pressed": String(place === state.run), text: other.policy,
    onclick: () => { state.run = place; state.t = Math.min(state.t, other.turns.length - 1); update(); },
  })));
  return [policies, el("div", { class: "moves" }, button("◀", "Previous turn (←)", state.t > 0 ? state.t - 1 : null), number, el("span", { text: `of ${turns.length - 1}` }),
    button("▶", "Next turn (→)", state.t + 1 < turns.length ? state.t + 1 : null), button("◀ event", "Previous event (Shift ←)", before && before.t), button("event ▶", "Next event (Shift →)", after && after.t))];
}

function facts(section) {
  const { trace } = section, run = section.runs[0];
  const kind = run ? run.tokens_kind : trace.tokens_kind;
  const limit = run && run.turn_limit ? ` (of ${trace.blocks.length} in the trace)` : "";
  const raw = trace.tools_tokens + trace.prefix_tokens + sum(trace.blocks.map((block) => block.tokens));
  return el("p", { class: "facts" },
    trace.demo ? badge("demo", "demo", "An example trace that comes with PaMER Lab") : null, badge(kind, kind, "How tokens were counted"),
    ` ${counted(run ? run.turns.length : trace.blocks.length, "turn")}${limit}, ${short(raw)} tokens in total, counted with ${trace.tokenizer}. Format ${trace.format}${trace.model ? `, recorded from ${visible(trace.model)}` : ""}. `,
    trace.reward !== null ? [badge("recorded", "recorded", "Reported by the source, not recomputed"), ` reward ${trace.reward}.`] : null);
}

// The open run in one line.
function headline(run) {
  const last = run.turns[run.turns.length - 1], totals = run.totals;
  const end = last.raw ? 100 * (last.active / last.raw - 1) : 0;
  const parts = [
    ` · ${counted(run.turns.length, "turn")}${run.status === "done" ? "" : ` (${run.status})`} · ${short(last.raw)} → ${short(last.active)} tokens at the end (${signed(end, 1)} %)`,
    "total" in totals ? ` · total ${signed(-totals.reduction_pct, 1)} %, peak ${short(totals.peak_active)}` : "",
    ...[["compress", "compression"], ["recall", "recall"], ["fallback", "fallback"]].map(([action, word]) => {
      const count = run.turns.filter((turn) => turn.action === action).length;
      return count || action !== "fallback" ? ` · ${counted(count, word)}` : "";
    }),
    " · actions fixed",
  ];
  return [el("b", { text: run.policy }), parts.join("")];
}

function contextSeries(section) {
  return section.runs.map((run) => ({
    name: run.policy, look: lookOf(run.policy), points: run.turns.map((turn) => [turn.t, turn.active]),
    marks: run.turns.filter((turn) => turn.action !== "pass").map((turn) => ({ x: turn.t, y: turn.active, kind: turn.action })),
    tip: (t) => (run.turns[t] && run.turns[t].action !== "pass" ? `  ${SIGNS[run.turns[t].action]}` : ""),
  }));
}

function contextAnswer(section) {
  const ends = section.runs.map((run) => {
    const last = run.turns[run.turns.length - 1];
    return `${run.policy} ${short(last.active)}${run.status === "done" ? "" : ` (only up to turn ${last.t})`}`;
  });
  const run = section.runs[0];
  return `At the last turn: ${ends.join(", ")} tokens. ${upper(run.tokens_kind)} with ${run.tokenizer}, n = ${counted(run.turns.length, "turn")}. ▼ compression, ▲ recall, ✕ fallback. Actions are fixed. Click a turn to open it; ← and → move.`;
}

function auditAnswer(section) {
  const counts = {};
  for (const row of section.selections) counts[row.outcome] = (counts[row.outcome] || 0) + 1;
  const words = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ");
  const reviewed = section.selections.filter((row) => row.reviews.length).length;
  return `n = ${counted(section.selections.length, "selection")}: ${words}; ${reviewed} reviewed in this file.`;
}

// If the search for evidence took too long, the text says where it ended.
function searchedTo(run) {
  const turn = run.evidence.searched_to_turn;
  return turn === null || turn === undefined ? "" : `, searched to turn ${turn}`;
}

function policyTable(section, onPick) {
  const columns = [
    { title: "Policy", value: (run) => el("span", { class: "nowrap" }, svg("svg", { viewBox: "0 0 26 10", width: 26, height: 10, "aria-hidden": "true" }, svg("path", { class: `line ${lookOf(run.policy)}`, d: "M1,5H25" })), ` ${run.policy}`) },
    { title: "Main input", number: true, value: (run) => whole(run.totals.main_input) },
    { title: "Main output", number: true, value: (run) => whole(run.totals.main_output) },
    { title: "Auxiliary", number: true, hint: "Input and output of the policy's own model calls", value: (run) => whole(run.totals.aux_input + run.totals.aux_output) },
    { title: "Total", number: true, value: (run) => whole(run.totals.total) },
    { title: "Change", number: true, hint: "Total relative to base", value: (run) => change(-run.totals.reduction_pct, run.cost ? run.cost.vs_base : null) },
    { title: "Peak", number: true, value: (run) => whole(run.totals.peak_active) },
    { title: "Cached input", number: true, hint: "Common prefix with the previous request", value: (run) => `${((100 * run.totals.cached_input) / Math.max(1, run.totals.main_input)).toFixed(1)} %` },
    { title: "▼", number: true, hint: "Compressions", value: (run) => run.totals.actions.compress },
    { title: "▲", number: true, hint: "Recalls", value: (run) => run.totals.actions.recall },
    { title: "✕", number: true, hint: "Fallbacks", value: (run) => run.totals.actions.fallback },
    { title: "Cost vs base", number: true, hint: "Simulated with prompt caching, over the base agent's cost", value: (run) => (run.cost && run.cost.vs_base !== null ? run.cost.vs_base.toFixed(2) : "none") },
    { title: "Evidence in context", number: true, hint: "Identifiers used by a later recorded action that were still in the context", value: (run) => (run.evidence.uses ? `${run.evidence.in_context_pct.toFixed(1)} % of ${run.evidence.uses}` : "none used") + searchedTo(run) },
  ];
  const runs = section.runs.filter((run) => "total" in run.totals);
  return el("div", {}, el("h3", { text: "Totals by policy" }), table(columns, runs, { onPick: (run) => onPick(section.runs.indexOf(run)) }),
    el("p", { class: "quiet", text: `Tokens ${runs.length ? runs[0].tokens_kind : ""} with ${section.trace.tokenizer}; n = one trace. ${COLOURED} Extractive summaries, features and embeddings run locally and are not billed as tokens.` }));
}

// `cost` is relative to the policy compared with: fewer tokens at a higher cost are not better.
function change(percent, cost) {
  if (Math.abs(percent) < 0.05) return "=";
  const agrees = typeof cost === "number" && (percent < 0 ? cost < 1 : cost > 1);
  return el("span", { class: agrees ? (percent < 0 ? "good" : "bad") : "undecided", text: `${percent < 0 ? "▼" : "▲"} ${signed(percent, 1)} %` });
}

function eventsPanel(section, opener) {
  const rows = section.runs.flatMap((run) => run.turns.filter((turn) => turn.action !== "pass").map((turn) => ({ run, turn })));
  if (!rows.length) return null;
  const list = table([
    { title: "Turn", number: true, value: ({ turn }) => turn.t },
    { title: "Policy", value: ({ run }) => run.policy },
    { title: "Event", value: ({ turn }) => `${SIGNS[turn.action]} ${turn.action}` },
    { title: "Votes", value: ({ turn }) => (turn.votes ? `${turn.votes.filter(Boolean).length} of ${turn.votes.length}` : "") },
    { title: "Sent", number: true, value: ({ turn }) => whole(turn.raw) },
    { title: "Seen", number: true, value: ({ turn }) => whole(turn.active) },
    { title: "Why", value: ({ turn }) => visible(turn.reason) },
  ], rows, { onPick: ({ run, turn }) => opener.open(run.run_id, turn.t) });
  return el("details", { class: "block printed" }, el("summary", { text: `All ${counted(rows.length, "event")}` }), list);
}

function blocksPanel(trace) {
  const reader = el("div", { class: "reader" });
  const open = (block, number) => reader.replaceChildren(el("h4", { text: `Block ${number}` }), textBox(block.text));
  const list = table([
    { title: "Block", number: true, value: (block, number) => number },
    { title: "Calls", value: (block) => visible(block.calls.join(", ")) || "answer" },
    { title: "Starts with", value: (block) => visible((words(block.text) || "").replace(/^<\|im_start\|>assistant\n/, "").slice(0, 140)) },
    { title: "Tokens", number: true, value: (block) => whole(block.tokens) },
  ], trace.blocks, { onPick: open });
  return el("details", { class: "block" }, el("summary", { text: `Trace: prefix and ${counted(trace.blocks.length, "block")}` }),
    el("details", {}, el("summary", { text: `Prefix: system and task, ${whole(trace.prefix_tokens)} tokens` }), textBox(trace.prefix)),
    trace.tools ? el("details", {}, el("summary", { text: `Tool descriptions, ${whole(trace.tools_tokens)} tokens` }), textBox(trace.tools)) : null,
    el("div", { class: "columns" }, list, reader));
}

function transcriptSection(section, node) {
  const { trace } = section;
  const before = [trace.tools_tokens + trace.prefix_tokens];
  for (const block of trace.blocks) before.push(before[before.length - 1] + block.tokens);
  const series = [{ name: "raw history", look: "base", points: trace.blocks.map((block, n) => [n, before[n]]) }];
  const panel = blocksPanel(trace);
  panel.open = true;
  const chart = figure("Context size before each turn", `${short(before[0])} tokens before the first turn, ${short(before[trace.blocks.length - 1])} before the last; ${trace.tokens_kind} with ${trace.tokenizer}, n = ${counted(trace.blocks.length, "turn")}. Click a turn to read its block.`,
    (width) => lineChart(width, { series, xTitle: "turn", yTitle: "tokens", selected: section.open.turn, onPick: open }));
  function open(t) { section.open.turn = t; chart.redraw(); panel.querySelectorAll(".columns tbody tr")[t]?.click(); }
  node.append(el("h2", { text: `Transcript of ${visible(trace.name || trace.trace_id)}` }), facts(section), chart.node, panel);
  queueMicrotask(() => { chart.redraw(); open(section.open.turn ?? 0); });
  return node;
}
