// Selections of PaMER+: chosen steps, other candidates, reviews, and a form for new reviews.
// New reviews stay in this browser, if it lets a file store data, and are exported as a JSON file that PaMER Lab imports.

const VERDICTS = ["right", "missing evidence", "unnecessary step", "wrong step"];
const NEEDS_STEPS = new Set(["unnecessary step", "wrong step"]);  // where none was chosen, none is unnecessary or wrong
const DRAFTS = {
  get key() { return `pamer-lab reviews ${data("manifest").report_id}`; },
  list: [],
  load() {
    try { this.list = JSON.parse(localStorage.getItem(this.key) || "[]"); } catch { this.list = []; }
    if (!Array.isArray(this.list)) this.list = [];
  },
  save() {
    try { localStorage.setItem(this.key, JSON.stringify(this.list)); return true; } catch { return false; }
  },
};

function exportReviews() {
  const manifest = data("manifest");
  const value = { format: "pamer-lab-reviews", version: 2, report_id: manifest.report_id, exported_at: new Date().toISOString(), reviews: DRAFTS.list };
  download(`reviews-${manifest.report_id}.json`, "application/json", JSON.stringify(value, null, 1) + "\n");
}

function auditPanel(section, context) {
  DRAFTS.load();
  const node = el("div", { class: "audit" });
  const state = { at: Math.max(0, section.selections.findIndex((row) => row.outcome === "accepted")) };
  const draw = () => {
    const row = section.selections[state.at];
    node.replaceChildren(
      el("div", { class: "queue" }, queue(section, state, draw), exporter()),
      el("div", { class: "case" }, selectionFacts(row, section, context), stepColumns(row, section), reviewList(row), reviewForm(row, draw)),
    );
  };
  node.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const choice = node.querySelector(`input[name=verdict][data-number="${event.key}"]`);
    if (choice && !choice.disabled) { choice.checked = true; choice.focus(); }
  });
  draw();
  return node;
}

function queue(section, state, draw) {
  return table([
    { title: "Turn", number: true, value: (row) => row.turn },
    { title: "Outcome", value: (row) => row.outcome },
    { title: "Steps", value: (row) => row.steps.join(", ") || "none" },
    { title: "Reviews", number: true, value: (row) => (reviewsOf(row).length ? String(reviewsOf(row).length) : "") },
  ], section.selections, { onPick: (row, number) => { state.at = number; draw(); }, rowClass: (row, number) => (number === state.at ? "open" : "") });
}

function exporter() {
  const count = DRAFTS.list.length;
  return el("div", { class: "noprint" },
    el("button", { class: "action", id: "export-reviews", disabled: !count, onclick: exportReviews, text: count ? `Export ${counted(count, "review")} as JSON` : "No reviews yet" }),
    el("p", { class: "quiet", text: "Import into PaMER Lab: pamer-lab audit import FILE.json" }));
}

function selectionFacts(row, section, context) {
  const share = row.covered_tokens ? ` Chosen: ${whole(row.chosen_tokens)} of the ${whole(row.covered_tokens)} tokens covered by the chosen summaries (${((100 * row.chosen_tokens) / row.covered_tokens).toFixed(1)} %).${row.restored_tokens == null ? "" : ` Restored: ${whole(row.restored_tokens)} tokens.`}` : "";
  const inPart = new Set(row.restored_in_part || []);
  const cited = row.cited_steps.map((step) => (inPart.has(step) ? `${step} (restored in part)` : step)).join(", ");
  return el("div", {},
    el("div", { class: "bar" }, el("h4", { text: `Selection at turn ${row.turn}: ${row.outcome}` }),
      context ? el("button", { class: "link noprint", text: "Open this turn", onclick: () => context.open(row.run_id, row.turn) }) : null),
    el("p", { text: `${upper(visible(row.reason))}.${share}` }),
    row.goal ? el("p", {}, "Goal: ", el("q", { text: visible(words(row.goal) || "") })) : null,
    el("p", { class: "quiet", text: `Router ${row.router}, recall agent ${row.agent || "none"}; cache ${row.cache || "not used"}; cited steps ${cited || "none"}.` }),
    el("details", {}, el("summary", { text: "Router query (task and recent blocks)" }), textBox(row.query)));
}

function stepColumns(row, section) {
  const scores = new Map([...row.candidates, ...row.near_misses].map((entry) => [entry.step, entry]));
  const steps = (numbers, empty) => (numbers.length ? numbers.map((step) => {
    const entry = scores.get(step), block = section.trace.blocks[step];
    const facts = [`${whole(block ? block.tokens : 0)} tokens`, entry ? `rank ${entry.rank}` : "", entry && typeof entry.score === "number" ? `score ${entry.score.toFixed(3)}` : ""];
    return el("details", {}, el("summary", { text: `Step ${step} · ${facts.filter(Boolean).join(" · ")}` }), block ? textBox(block.text) : null);
  }) : el("p", { class: "quiet", text: empty }));
  const near = [...new Set(row.near_misses.map((entry) => entry.step))];
  return el("div", { class: "columns" },
    el("div", {}, el("h4", { text: "Chosen" }), steps(row.steps, "No step was chosen.")),
    el("div", {}, el("h4", { text: "Nearly chosen" }), steps(near, "There was no other candidate.")));
}

const reviewsOf = (row) => [...row.reviews, ...DRAFTS.list.filter((review) => review.audit_id === row.audit_id)];

function reviewList(row) {
  const found = reviewsOf(row);
  return el("div", {}, el("h4", { text: "Reviews" }), found.length ? table([
    { title: "Reviewer", value: (review) => visible(review.reviewer) },
    { title: "Verdict", value: (review) => review.verdict },
    { title: "Steps", value: (review) => review.steps.join(", ") },
    { title: "Note", value: (review) => visible(review.note) },
    { title: "Written", value: (review) => review.created_at.slice(0, 16).replace("T", " ") },
    { title: "Where", value: (review) => (row.reviews.includes(review) ? "in the file" : "in this browser, not exported") },
  ], found) : el("p", { class: "quiet", text: "This selection has no reviews yet." }));
}

function reviewForm(row, draw) {
  const name = el("input", { name: "reviewer", required: true, maxlength: 200, value: DRAFTS.name || "", autocomplete: "off" });
  const steps = el("input", { name: "steps", value: row.steps.join(", "), inputmode: "numeric" });
  const note = el("textarea", { name: "note", rows: 2, maxlength: 10000 });
  const told = el("p", { class: "quiet", role: "status" });
  const verdicts = el("div", { class: "verdicts", role: "radiogroup", "aria-label": "Verdict" }, VERDICTS.map((verdict, number) => el("label", {},
    el("input", { type: "radio", name: "verdict", value: verdict, "data-number": number + 1, disabled: !row.steps.length && NEEDS_STEPS.has(verdict) }), ` ${number + 1} ${verdict}`)));
  const save = () => {
    const verdict = verdicts.querySelector("input:checked");
    const numbers = steps.value.split(/[\s,]+/).filter(Boolean).map(Number);
    if (!name.value.trim() || !verdict) { told.textContent = "A review needs your name and a verdict."; return; }
    if (numbers.some((step) => !Number.isInteger(step) || step < 0)) { told.textContent = "Steps are block numbers, separated by commas."; return; }
    DRAFTS.name = name.value.trim();
    DRAFTS.list.push({
      audit_id: row.audit_id, reviewer: DRAFTS.name, verdict: verdict.value, steps: [...new Set(numbers)].sort((one, other) => one - other),
      note: note.value, created_at: new Date().toISOString(),
    });
    const kept = DRAFTS.save();
    draw();
    document.dispatchEvent(new CustomEvent("reviewed", { detail: kept }));
  };
  return el("div", { class: "form noprint" }, el("h4", { text: "Your review" }),
    el("label", { class: "field" }, "Name ", name), verdicts,
    el("label", { class: "field" }, "Steps you would have chosen ", steps), el("label", { class: "field" }, "Note ", note),
    el("button", { class: "action", onclick: save, text: "Save review" }), told);
}
