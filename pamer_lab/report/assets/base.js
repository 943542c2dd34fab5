// Shared by all parts: elements, numbers, styles, texts. Text enters the page through textContent only.

const SVG = "http://www.w3.org/2000/svg";
const CAP = 2000; // characters of a text shown before "show all"
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;

const SAID = new Set(["title", "aria-label", "alt", "placeholder"]); // attributes that readers see

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = visible(String(value));
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : SAID.has(name) ? visible(String(value)) : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child instanceof Node ? child : visible(String(child)));
  }
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// 12.4K, 1.2M; below a thousand the number itself.
function short(value) {
  const size = Math.abs(value);
  if (size < 1000) return Math.round(value).toLocaleString("en-US");
  return size < 999950 ? (value / 1000).toFixed(1) + "K" : (value / 1e6).toFixed(1) + "M";
}

const whole = (value) => Math.round(value).toLocaleString("en-US");
const signed = (value, digits) => (value > 0 ? "+" : value < 0 ? "-" : "") + Math.abs(value).toFixed(digits);
const fixed = (value, digits) => (typeof value === "number" ? value.toFixed(digits) : "none");
const counted = (count, thing, things) => `${whole(count)} ${count === 1 ? thing : things || thing + "s"}`;
const sum = (values) => values.reduce((total, value) => total + value, 0);
const upper = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

// Blocks [first, last) as people write them: 3-7, 9.
const spansText = (spans) => (spans || []).map(([a, b]) => (b === a + 1 ? `${a}` : `${a}-${b - 1}`)).join(", ");
const spanBlocks = (spans) => (spans || []).flatMap(([a, b]) => Array.from({ length: b - a }, (_, n) => a + n));

function statesOf(packed) {
  return packed ? packed.split(" ").map((run) => run[0].repeat(Number(run.slice(1)))).join("") : "";
}

const COLOURED = "Green is better; token changes are coloured only if the cost changes in the same direction.";
const SIGNS = { pass: "·", compress: "▼", recall: "▲", fallback: "✕" };
const ACTION_WORDS = {
  pass: "nothing stored or recalled",
  compress: "compressed: older blocks were replaced by a summary",
  recall: "recalled: memory was added to the context",
  fallback: "fell back: something failed, so the request was sent unchanged",
};
const STATES = { A: "active", S: "summarised", R: "recalled", X: "restored", ".": "absent" };
const ITEM_WORDS = {
  tools: "tool descriptions", prefix: "system and task", blocks: "raw blocks", edited: "shortened block", summary: "summary in the context",
  recalled: "recalled summaries", evidence: "restored evidence",
};

// A policy's class: its colour and dash are in the style sheet, once for light and once for dark.
const CLASSES = { grey: "base", blue: "pamer", vermilion: "plus", sky: "sliding", brown: "periodic" };
function lookOf(policy) {
  return CLASSES[data("about").colours[policy.split(":")[0]]] || "ablation";
}

const DATA = {};
function data(id) {
  if (!(id in DATA)) DATA[id] = JSON.parse(document.getElementById(id).textContent);
  return DATA[id];
}

// Every character a reader could not see becomes one that can be seen.
function visible(text) {
  return text.replace(/\r\n/g, "\n").replace(UNSEEN, (mark) => {
    const code = mark.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "\u2421" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

const words = (id) => (id && Object.hasOwn(data("texts"), id) ? data("texts")[id] : null);

// A stored text in a box, cut until the reader asks for all of it.
function textBox(id) {
  const text = words(id);
  if (text === null) {
    return el("p", { class: "quiet", text: data("about").text.included ? "(empty)" : "This file does not include trace text." });
  }
  const box = el("pre", { class: "words", tabindex: "0", text: visible(text.slice(0, CAP)) });
  if (text.length <= CAP) return box;
  const more = el("button", { class: "link", text: `Show all ${whole(text.length)} characters` });
  more.addEventListener("click", () => { box.textContent = visible(text); more.remove(); });
  return el("div", {}, box, more);
}

function table(columns, rows, options) {
  const given = options || {};
  const head = el("tr", {}, columns.map((column) => el("th", { class: column.number ? "number" : "", scope: "col", title: column.hint, text: column.title })));
  const body = rows.map((row, number) => {
    const line = el("tr", { class: given.rowClass ? given.rowClass(row, number) : "" }, columns.map((column) => {
      const value = column.value(row, number);
      const cell = el("td", { class: column.number ? "number" : "" });
      cell.append(value === null || value === undefined ? "" : value instanceof Node ? value : visible(String(value)));
      return cell;
    }));
    if (given.onPick) {
      line.classList.add("pickable");
      line.tabIndex = 0;
      line.addEventListener("click", () => given.onPick(row, number));
      line.addEventListener("keydown", (event) => { if (event.key === "Enter") given.onPick(row, number); });
    }
    return line;
  });
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const badge = (text, kind, hint) => el("span", { class: `badge ${kind || ""}`, title: hint, text });
