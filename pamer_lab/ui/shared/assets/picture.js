// A saved picture includes the text around its chart on the page: the question above it and the answer below, with n, tokenizer and "demo".
//
// Plotly copies a chart's layout when its camera is pressed. Just before that, the layout is replaced by one with these words and room
// for them, and it is restored just after: the chart on the page is never redrawn. The words are those of the page, taken as text.

const SIZE = 13;
const LINE = 1.3 * SIZE; // Plotly's own line height
const LETTER = 0.52 * SIZE; // a little more than the mean width of a letter
const EDGE = 8;

const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function wrapped(text, letters) {
  const lines = [""];
  for (const word of text.trim().split(/\s+/)) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length >= letters) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines;
}

function wordsOf(frame, letters) {
  const question = frame.querySelector("strong")?.textContent ?? "";
  const answer = [...frame.querySelectorAll('[data-testid="stCaptionContainer"]')].pop()?.textContent ?? "";
  const lines = [...wrapped(question, letters).map((line) => `<b>${plain(line)}</b>`), ...wrapped(answer, letters).map(plain)];
  return lines.filter((line) => line !== "" && line !== "<b></b>");
}

function prepare(chart, frame) {
  const box = chart.querySelector(".svg-container").getBoundingClientRect();
  const tops = [...chart.querySelectorAll(".nsewdrag")].map((sheet) => sheet.getBoundingClientRect().top);
  const lines = wordsOf(frame, Math.floor((box.width - 2 * EDGE) / LETTER));
  const room = lines.length * LINE + 3 * EDGE;
  const height = box.height + room;
  const layout = chart.layout;
  const options = chart._context.toImageButtonOptions;
  chart.layout = {
    ...layout,
    margin: { ...layout.margin, t: Math.min(...tops, box.bottom) - box.top + room },
    title: {
      text: lines.join("<br>"),
      font: { size: SIZE, weight: 400 },
      ...{ x: 0, xref: "container", xanchor: "left", y: 1 - (2 * EDGE) / height, yref: "container", yanchor: "top", pad: { l: EDGE } },
    },
  };
  chart._context.toImageButtonOptions = { ...options, height };
  return () => {
    chart.layout = layout;
    chart._context.toImageButtonOptions = options;
  };
}

export default function () {
  const pressed = (event) => {
    const chart = event.target.closest?.('.modebar-btn[data-title^="Download plot"]')?.closest(".js-plotly-plot");
    const frame = chart?.closest('[class*="st-key-shown-"]');
    if (frame && chart.layout && chart._context) setTimeout(prepare(chart, frame), 0);
  };
  document.addEventListener("click", pressed, true);
  return () => document.removeEventListener("click", pressed, true);
}
