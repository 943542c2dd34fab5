// Marks every place on the page where a search text occurs, and keeps the open row of a long table in view.
//
// The texts stay as they are: places are painted with the browser's own highlights, which change no element. A table is scrolled only
// when its open row changes, so that a reader may look elsewhere in it.

const NAME = "pamer-hits";
const MOST = 2000; // places that are painted
const kept = new WeakMap();

function styled(colour) {
  let style = document.getElementById(NAME);
  if (!style) {
    style = document.createElement("style");
    style.id = NAME;
    document.head.append(style);
  }
  style.textContent = `::highlight(${NAME}) { background-color: ${colour}; color: black; }`;
}

function paint(words, scope) {
  if (!window.Highlight || !CSS.highlights) return;
  CSS.highlights.delete(NAME);
  const wanted = words.toLowerCase();
  document.documentElement.dataset.hits = "0";
  if (!wanted) return;
  const ranges = [];
  for (const part of document.querySelectorAll(scope)) {
    const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (walker.nextNode() && ranges.length < MOST) {
      const text = walker.currentNode.data.toLowerCase();
      for (let at = text.indexOf(wanted); at >= 0 && ranges.length < MOST; at = text.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + wanted.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set(NAME, new Highlight(...ranges));
  document.documentElement.dataset.hits = String(ranges.length);
}

function showRow(table, row, height) {
  const scroller = document.querySelector(`.st-key-${CSS.escape(table)} .dvn-scroller`);
  if (!scroller || scroller.scrollHeight <= scroller.clientHeight) return scroller != null;
  const top = row * height;
  const room = scroller.clientHeight - 2 * height;
  if (top < scroller.scrollTop || top > scroller.scrollTop + room) scroller.scrollTop = Math.max(0, top - room / 2);
  return true;
}

export default function ({ data, parentElement }) {
  const first = !kept.has(parentElement);
  const state = first ? { row: -1 } : kept.get(parentElement);
  kept.set(parentElement, state);
  state.data = data;
  styled(data.colour);
  const draw = () => {
    paint(state.data.words, state.data.scope);
    if (state.row !== state.data.row && showRow(state.data.table, state.data.row, state.data.height)) state.row = state.data.row;
  };
  draw();
  if (first) {
    let waiting = 0;
    state.watch = new MutationObserver(() => {
      clearTimeout(waiting);
      waiting = setTimeout(draw, 60);
    });
    state.watch.observe(document.querySelector('[data-testid="stMain"]') ?? document.body, { childList: true, subtree: true });
    state.stop = () => {
      clearTimeout(waiting);
      state.watch.disconnect();
      CSS.highlights?.delete(NAME);
      kept.delete(parentElement);
    };
  }
  return state.stop;
}
