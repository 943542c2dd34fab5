// The page: headline, the result of its own verification, the sections, and the provenance.

function pageHead(sections, checks) {
  const about = data("about"), failed = checks.failed.length;
  const seal = el("details", { class: `seal ${failed ? "broken" : "sound"}`, id: "verified" },
    el("summary", { text: `${failed ? "✕ " : "✓ "}verified ${checks.checked - failed} of ${checks.checked}` }), checksTable(checks));
  const text = !about.text.included ? "without trace text" : about.text.cut ? `with text; ${counted(about.text.cut, "long text")} shortened in the middle` : "with all text";
  return el("header", {},
    el("div", { class: "bar" }, el("h1", { text: document.title.replace(/ · PaMER Lab$/, "") }), el("button", { class: "action noprint", text: "Print", onclick: () => window.print() })),
    el("p", { class: "quiet", text: `A PaMER Lab report, created ${about.made.slice(0, 16).replace("T", " ")} UTC with version ${about.versions["pamer-lab"]}, ${text}. It works offline.` }),
    seal, failed ? el("p", { class: "warning", role: "alert", text: `${counted(failed, "check")} failed: the numbers in this file do not match its data. ${checks.failed.slice(0, 5).join("; ")}${failed > 5 ? "; …" : ""}.` }) : null,
    redactionLine(about.redaction),
    sections.length > 1 ? el("nav", { class: "noprint" }, sections.map((section, number) => el("a", { href: `#s${number}`, text: sectionName(section), onclick: (event) => { event.preventDefault(); document.getElementById(`s${number}`).scrollIntoView(); } }))) : null);
}

function sectionName(section) {
  if (section.kind === "replay") return `${section.runs.length ? "Replay" : "Transcript"}: ${visible(section.trace.name || section.trace.trace_id)}`;
  return { growth: "Context growth", arena: "Arena", study: visible(section.study ? section.study.name : ""), published: section.title }[section.kind];
}

function checksTable(checks) {
  return el("div", {}, el("p", { class: "quiet", text: "Recomputed in this browser from the data in this file." }), table([
    { title: "Check", value: ([name]) => name },
    { title: "Passed", number: true, value: ([, entry]) => `${entry.checked - entry.failed.length} of ${entry.checked}` },
    { title: "Failed", value: ([, entry]) => entry.failed.slice(0, 10).join("; ") + (entry.failed.length > 10 ? "; …" : "") },
  ], [...checks.groups]));
}

function redactionLine(redaction) {
  if (!redaction.summary.length) return el("p", { class: "quiet", text: "A scan for keys, tokens, private keys, e-mail addresses and home folders found nothing. It may have missed some." });
  const parts = redaction.summary.map((row) => `${counted(row.different, row.kind, row.kind === "e-mail address" ? "e-mail addresses" : undefined)} in ${counted(row.places, "place")} ${row.redacted ? "redacted" : "left in"}`);
  return el("details", { class: "redaction" }, el("summary", { text: `Scan for secrets: ${parts.join(", ")}.` }),
    el("p", { class: "quiet", text: "Redacted text reads [redacted: …]; equal values have equal numbers. Token counts are those of the original text. The scan may have missed some." }),
    table([
      { title: "Kind", value: (row) => `${row.kind} ${row.number}` }, { title: "Where", value: (row) => visible(row.place) },
      { title: "Shown", value: (row) => visible(row.shown) }, { title: "In this file", value: (row) => (row.redacted ? "redacted" : "left in") },
    ], redaction.findings), redaction.more ? el("p", { class: "quiet", text: `and ${whole(redaction.more)} more` }) : null);
}

function provenance(sections) {
  const about = data("about"), manifest = data("manifest");
  const pairs = (value) => table([{ title: "What", value: ([name]) => name }, { title: "Value", value: ([, item]) => visible(typeof item === "object" ? JSON.stringify(item) : String(item)) }], Object.entries(value));
  const runs = sections.filter((section) => section.kind === "replay").flatMap((section) => section.runs.map((run) => ({ run, trace: section.trace })));
  return el("section", { id: "provenance" }, el("h2", { text: "Provenance" }),
    about.command ? el("p", {}, "Created with ", el("code", { text: visible(about.command) }), ". The accompanying zip has the numbers as CSV and Parquet, and the configuration that reproduces them.") : null,
    el("p", { class: "quiet", text: "Measured: counted or computed by PaMER Lab. Estimated: characters divided by four, or a stated assumption. Recorded: reported by the source. Published: reported in the paper." }),
    el("details", { class: "block printed", open: true }, el("summary", { text: "Data and hashes" }), table([
      { title: "What", value: (row) => row[0] }, { title: "SHA-256 or id", value: (row) => el("code", { text: row[1] }) },
    ], [["this report", manifest.report_id], ...traceRows(sections), ...Object.entries(manifest.sha256).map(([name, digest]) => [`data element ${name}`, digest])])),
    runs.length ? el("details", { class: "block" }, el("summary", { text: "Settings of every run" }), runs.map(({ run, trace }) => el("details", {},
      el("summary", { text: `${run.policy} on ${visible(trace.name || trace.trace_id)} (${run.run_id}, profile ${run.profile}, ${run.status})` }),
      run.deviations.length ? el("ul", {}, run.deviations.map((text) => el("li", { text: `Differs from its original: ${text}` }))) : null, pairs({ ...run.settings, ...(run.heads?.name ? { heads: run.heads } : {}) })))) : null,
    el("details", { class: "block" }, el("summary", { text: "Versions" }), pairs(about.versions)),
    el("details", { class: "block" }, el("summary", { text: "Configuration of this report" }), el("pre", { class: "words", text: visible(JSON.stringify(about.config, null, 1)) })));
}

function traceRows(sections) {
  return sections.filter((section) => section.kind === "replay").flatMap(({ trace, runs }) => [
    [`trace ${visible(trace.name)}`, trace.trace_id], ...(trace.sha256 ? [["source file", trace.sha256]] : []), ...runs.map((run) => [`run, ${run.policy}`, run.run_id]),
  ]);
}

function start() {
  const page = document.getElementById("page");
  let sections;
  try {
    sections = Array.from({ length: data("manifest").sections }, (_, number) => data(`section-${number}`));
    data("about");
    data("texts");
  } catch (error) {
    page.append(el("header", {}, el("h1", { text: "This report cannot be read" }), el("p", { class: "warning", role: "alert", text: `Its data is damaged (${error.message}). Ask for a new copy of the file.` })));
    return;
  }
  const checks = verifyAll(sections);
  page.append(pageHead(sections, checks));
  sections.forEach((section, number) => {
    try {
      page.append({ replay: replaySection, growth: growthSection, arena: arenaSection, study: studySection, published: publishedSection }[section.kind](section, number));
    } catch (error) {
      page.append(el("p", { class: "warning", role: "alert", text: `Section ${number + 1} cannot be drawn: its data is damaged (${error.message}).` }));
    }
  });
  page.append(provenance(sections));
  window.addEventListener("beforeprint", () => document.querySelectorAll("details.printed, #verified").forEach((node) => { node.open = true; }));
  document.body.dataset.ready = "yes";
}

start();
