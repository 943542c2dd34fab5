// Three things for every page: `?` asks for the list of keys, and a link with a target brings that part of the page into view.
//
// Menu links, which Streamlit gives no focus ring, get one when the keyboard reaches them.
// A part may be drawn long after the page, and parts above it may grow: the page follows it until it stops moving or the reader scrolls.

const REST = 1500; // milliseconds without a change after which a part is in its final place
const LONGEST = 20000;
const TOP = 70; // pixels that the menu covers

let reached = "";

function ringed() {
  if (document.getElementById("pamer-focus")) return;
  const style = document.createElement("style");
  style.id = "pamer-focus";
  style.textContent = "a:focus-visible { outline: 2px solid currentColor !important; outline-offset: 1px; }";
  document.head.append(style);
}

function typing(target) {
  return target?.closest?.("input, textarea, select, [contenteditable=true], [role=combobox]") != null;
}

function follow(target) {
  const began = Date.now();
  let last = NaN;
  let since = began;
  let stopped = false;
  const stop = () => (stopped = true);
  const events = ["wheel", "touchstart", "keydown", "pointerdown"];
  events.forEach((name) => window.addEventListener(name, stop, { capture: true, passive: true, once: true }));
  const look = () => {
    const part = document.querySelector(`.st-key-${CSS.escape(target)}`);
    const scroller = document.querySelector('[data-testid="stMain"]');
    if (part && scroller) {
      const away = part.getBoundingClientRect().top - TOP;
      const at = away + scroller.scrollTop;
      if (at !== last) [last, since] = [at, Date.now()];
      if (Math.abs(away) > 2) scroller.scrollBy(0, away);
      document.documentElement.dataset.reached = target;
    }
    const rested = part && Date.now() - since > REST;
    if (!stopped && !rested && Date.now() - began < LONGEST) setTimeout(look, 100);
    else events.forEach((name) => window.removeEventListener(name, stop, { capture: true }));
  };
  look();
}

export default function ({ data, setTriggerValue }) {
  ringed();
  if (!data.target) reached = "";
  else if (reached !== data.target) {
    reached = data.target;
    follow(data.target);
  }
  const pressed = (event) => {
    if (event.key === "?" && !typing(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) setTriggerValue("asked", true);
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
