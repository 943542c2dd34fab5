// One turn under one policy: the reason for its decision, the model's view in order, and the omitted blocks.

// Items in request order; raw blocks one by one, and omitted blocks at their original position.
function requestRows(turn, trace) {
  const states = statesOf(turn.states), rows = [];
  let place = 0;
  const leftOut = (until) => {
    for (; place < until; place += 1) {
      rows.push({ name: `block ${place}`, state: STATES[states[place]], sent: trace.blocks[place].tokens, seen: null, text: trace.blocks[place].text });
    }
  };
  for (const item of turn.items) {
    if (item.kind === "blocks") {
      const [first, last] = item.spans[0];
      leftOut(first);
      for (; place < last; place += 1) {
        rows.push({ name: `block ${place}`, state: "active", sent: trace.blocks[place].tokens, seen: trace.blocks[place].tokens, text: trace.blocks[place].text });
      }
    } else if (item.kind === "edited") {
      leftOut(item.spans[0][0]);
      rows.push({ name: `block ${place}`, state: "shortened", sent: trace.blocks[place].tokens, seen: item.tokens, text: item.text, source: item.source });
      place += 1;
    } else if (item.kind === "tools" || item.kind === "prefix") {
      rows.push({ name: item.kind, state: "", sent: item.tokens, seen: item.tokens, text: trace[item.kind] });
    } else {
      rows.push({ name: ITEM_WORDS[item.kind], state: "added", sent: null, seen: item.tokens, text: item.text, covers: item.spans, source: item.source });
    }
  }
  leftOut(turn.t);
  return rows;
}

function whyPanel(run, turn) {
  const change = turn.active - turn.raw;
  const parts = [
    el("p", { class: "lead" }, el("b", { text: `${SIGNS[turn.action]} Turn ${turn.t}` }), ` of ${run.policy}: ${ACTION_WORDS[turn.action]}.`),
    el("p", { text: `${upper(visible(turn.reason))}.` }),
    turn.error ? el("p", { class: "warning", text: visible(turn.error) }) : null,
    el("p", { text: `Sent ${whole(turn.raw)} tokens, the model sees ${whole(turn.active)}${change ? ` (${signed((100 * change) / turn.raw, 1)} %)` : ", unchanged"}; ${whole(turn.cached)} could come from a prefix cache.${turn.candidate ? ` Candidate for compression: ${whole(turn.candidate)} tokens.` : ""}` }),
  ];
  if (turn.logits) parts.push(votesTable(run, turn));
  if (turn.spent) {
    parts.push(el("h4", { text: "Side work" }), table([
      { title: "Operation", value: (entry) => entry.operation },
      { title: "In", number: true, value: (entry) => whole(entry.input_tokens) },
      { title: "Out", number: true, value: (entry) => whole(entry.output_tokens || 0) },
      { title: "By", value: (entry) => (entry.model || "").replace(" block_", " layer ") },
      { title: "Kind", value: (entry) => (entry.local ? "local work" : "model call") },
    ], turn.spent));
  }
  return el("div", { class: "why" }, parts);
}

const logitOf = (probability) => Math.log(probability / (1 - probability));

function votesTable(run, turn) {
  const limits = turn.thresholds.map(logitOf);
  const margins = turn.logits.map((value, head) => value - limits[head]);
  const yes = turn.votes.filter(Boolean).length, rule = run.settings.rule;
  const rows = turn.logits.map((value, head) => ({ head: head + 1, value, limit: limits[head], margin: margins[head], vote: turn.votes[head] }));
  const needed = rule ? rule.vote : null;
  const text = needed === null ? `${yes} of ${rows.length} heads vote yes.` : `${yes} of ${rows.length} heads vote yes; ${needed} needed.${flips(margins, needed)}`;
  return el("div", {}, el("h4", { text: "Votes" }), table([
    { title: "Head", value: (row) => row.head },
    { title: "Logit", number: true, value: (row) => row.value.toFixed(3) },
    { title: "Threshold", number: true, value: (row) => row.limit.toFixed(3), hint: "As a logit" },
    { title: "Margin", number: true, value: (row) => signed(row.margin, 3), hint: "Logit minus threshold; positive means yes" },
    { title: "Vote", value: (row) => (row.vote ? "✓ yes" : "no") },
  ], rows), el("p", { class: "quiet", text }));
}

// The smallest common bound on shifts of the logits under which the majority can flip.
function flips(margins, needed) {
  const yes = margins.filter((margin) => margin >= 0).length;
  const agreeing = margins.filter((margin) => (margin >= 0) === (yes >= needed)).map(Math.abs).sort((one, other) => one - other);
  const moved = yes >= needed ? yes - needed + 1 : needed - yes;
  return moved <= agreeing.length && moved > 0 ? ` The decision flips if logits move by ${agreeing[moved - 1].toFixed(2)}.` : "";
}

function contextPanel(run, turn, trace, state) {
  const all = requestRows(turn, trace);
  const hidden = all.filter((row) => row.seen === null).length;
  const rows = state.leftOut ? all : all.filter((row) => row.seen !== null);
  const total = sum(all.map((row) => row.seen || 0));
  const reader = el("div", { class: "reader" });
  const open = (row) => {
    reader.replaceChildren(el("h4", { text: `${upper(row.name)}${row.covers ? ` for blocks ${spansText(row.covers)}` : ""}` }), textBox(row.text));
  };
  const toggle = hidden ? el("label", { class: "toggle" }, el("input", { type: "checkbox", checked: state.leftOut, onchange: (event) => { state.leftOut = event.target.checked; state.redraw(); } }),
    ` show ${counted(hidden, "omitted block")}`) : null;
  const list = table([
    { title: "#", number: true, value: (row, number) => number },
    { title: "Item", value: (row) => row.name },
    { title: "State", value: (row) => (row.seen === null ? `− ${row.state}` : row.state === "added" ? "+ added" : row.state) },
    { title: "Covers", value: (row) => (row.covers ? `blocks ${spansText(row.covers)}` : "") },
    { title: "Tokens", number: true, value: (row) => (row.seen === null ? `(${whole(row.sent)})` : whole(row.seen)) },
  ], rows, { onPick: open, rowClass: (row) => (row.seen === null ? "gone" : row.state === "added" ? "added" : "") });
  const added = all.find((row) => row.state === "added");
  if (added) open(added);
  return el("div", { class: "context" }, el("div", { class: "bar" }, el("h4", { text: "Model's view, in order" }), toggle), list,
    el("p", { class: "quiet", text: `${counted(all.length - hidden, "item")}, ${whole(total)} tokens ${total === turn.active ? "=" : "≠"} the plotted ${whole(turn.active)}; ${run.tokens_kind} with ${run.tokenizer}. Select a row to read it.` }),
    reader);
}

// Memories that this turn wrote or used: the summary, the covered steps, and their tokens.
function memoryPanel(run, turn) {
  const used = (turn.memory_ids || []).map((name) => run.memories.find((memory) => memory.memory_id === name)).filter(Boolean);
  const inPart = new Set(turn.restored_in_part || []);
  const restored = turn.restored ? el("p", { text: `Restored steps, verbatim: ${turn.restored.map((step) => (inPart.has(step) ? `${step} (in part)` : step)).join(", ")}.` }) : null;
  return el("div", { class: "memories" }, restored, used.map((memory) => el("details", { open: turn.action === "compress" },
    el("summary", { text: `${turn.action === "compress" ? "Stored" : "Used"} memory ${memory.sequence}: steps ${spansText(neighbours(memory.steps.map((step) => step.step)))}, ${whole(memory.tokens)} tokens → ${whole(memory.summary_tokens)}` }),
    textBox(memory.summary),
    table([
      { title: "Step", number: true, value: (step) => step.step },
      { title: "Tokens", number: true, value: (step) => whole(step.tokens) },
      { title: "What happened", value: (step) => visible(words(step.detail) || "") },
    ], memory.steps),
    el("p", { class: "quiet", text: `Summary by ${memory.summary_model}, embedding by ${memory.embedding_model}.` }))));
}

function neighbours(numbers) {
  const spans = [];
  for (const number of numbers) {
    if (spans.length && spans[spans.length - 1][1] === number) spans[spans.length - 1][1] = number + 1;
    else spans.push([number, number + 1]);
  }
  return spans;
}
