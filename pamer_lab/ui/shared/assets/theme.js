// Asks for a rerun if the page's theme is not the one its charts were drawn for.
// Streamlit calls this again whenever the theme or the data changes.

function darkNow(parent) {
  const style = getComputedStyle(parent.host ?? parent);
  const background = style.getPropertyValue("--st-background-color").trim();
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = background;
  const hex = probe.fillStyle;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const dark = darkNow(parentElement);
  if (dark !== data.dark) setTriggerValue("switched", dark ? "dark" : "light");
}
