// Keeps the reviewer's name in this browser, even while it is being typed, so that a refresh does not lose it. It is never sent
// anywhere but to this page.

const KEY = "pamer-lab-reviewer";
const TYPED = "pamer-lab-reviewer-typed";

export default function ({ data, setTriggerValue }) {
  const typing = (event) => {
    if (event.target.closest?.(".st-key-reviewer")) localStorage.setItem(TYPED, event.target.value);
  };
  // Streamlit sends nothing for Enter in a field whose text the server set, as after a refresh.
  const entering = (event) => {
    if (event.key === "Enter" && event.target.closest?.(".st-key-reviewer")) setTriggerValue("entered", event.target.value);
  };
  try {
    if (data.name) {
      localStorage.setItem(KEY, data.name);
      localStorage.removeItem(TYPED);
    } else if (data.forget) {
      localStorage.removeItem(KEY);
      localStorage.removeItem(TYPED);
    } else if (localStorage.getItem(KEY)?.trim()) {
      setTriggerValue("remembered", localStorage.getItem(KEY));
    } else if (localStorage.getItem(TYPED)?.trim() && !document.querySelector(".st-key-reviewer input")?.value) {
      setTriggerValue("typed", localStorage.getItem(TYPED));
    }
  } catch {
    // This browser stores nothing, so the page asks for the name.
    return;
  }
  document.addEventListener("input", typing);
  document.addEventListener("keydown", entering);
  return () => {
    document.removeEventListener("input", typing);
    document.removeEventListener("keydown", entering);
  };
}
