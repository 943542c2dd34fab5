// Marks the open turn or block in charts that Streamlit drew, and reports which point was clicked.
//
// The charts themselves stay as they are: a mark is a line (and a band) laid over the plot, so moving it redraws nothing. Only
// plotly's public side is used: the events of its element, its layout's range, and the sheet over the plot.
// Streamlit calls the function again with new data; what a component instance keeps between calls is in `kept`.

const kept = new WeakMap();
const MARK = "pamer-mark";

function chartOf(key) {
  return document.querySelector(`.st-key-${CSS.escape(key)} .js-plotly-plot`);
}

function place(chart, mark, colour) {
  const sheet = chart.querySelector(".nsewdrag");
  const box = chart.querySelector(".svg-container");
  const range = chart.layout?.xaxis?.range;
  if (!sheet || !box || !range) return;
  const plot = sheet.getBoundingClientRect();
  const frame = box.getBoundingClientRect();
  const pixel = (value) => ((value - range[0]) / (range[1] - range[0])) * plot.width;
  let line = box.querySelector(`.${MARK}`);
  if (!line) {
    line = document.createElement("div");
    line.className = MARK;
    line.append(document.createElement("div"), document.createElement("div"));
    box.append(line);
  }
  line.dataset.at = mark.at;
  const top = `${plot.top - frame.top}px`;
  line.style.cssText =
    `position:absolute;overflow:hidden;pointer-events:none;left:${plot.left - frame.left}px;top:${top};` +
    `width:${plot.width}px;height:${plot.height}px`;
  const bar = "position:absolute;top:0;height:100%;";
  const [band, at] = line.children;
  band.style.cssText = mark.band
    ? `${bar}background:${colour};opacity:0.16;left:${pixel(mark.band[0])}px;width:${pixel(mark.band[1]) - pixel(mark.band[0])}px`
    : "display:none";
  at.style.cssText = `${bar}left:${pixel(mark.at) - 0.75}px;width:1.5px;background:${colour}`;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const first = !kept.has(parentElement);
  const state = first ? { known: new WeakSet() } : kept.get(parentElement);
  kept.set(parentElement, state);
  Object.assign(state, { data, setTriggerValue });

  function draw(key) {
    const mark = state.data.marks[key];
    const chart = chartOf(key);
    if (!chart?.on) return;
    if (mark) place(chart, mark, state.data.colour);
    if (state.known.has(chart)) return;
    state.known.add(chart);
    chart.on("plotly_afterplot", () => draw(key));
    chart.on("plotly_click", (event) => {
      const point = event.points[0];
      if (point) state.setTriggerValue("clicked", { chart: key, x: point.x, line: point.data.name ?? "" });
    });
  }

  const keys = () => Object.keys(state.data.marks);
  const drawAll = () => keys().forEach(draw);
  drawAll();
  if (first) {
    state.watch = new MutationObserver(() => keys().filter((key) => !state.known.has(chartOf(key))).forEach(draw));
    state.watch.observe(document.querySelector('[data-testid="stMain"]') ?? document.body, { childList: true, subtree: true });
    window.addEventListener("resize", drawAll);
    state.stop = () => {
      state.watch.disconnect();
      window.removeEventListener("resize", drawAll);
      kept.delete(parentElement);
      Object.assign(state, { data: { marks: {} }, setTriggerValue: () => {} });
    };
  }
  return state.stop;
}
