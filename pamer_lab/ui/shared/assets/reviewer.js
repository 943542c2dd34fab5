// Keeps the reviewer's name in this browser, also while it is being typed, so that a refresh does not forget it. It is never sent
// anywhere else than to this page.

const KEY = "pamer-lab-reviewer";
const TYPED = "pamer-lab-reviewer-typed";

export default function ({ data, setTriggerValue }) {
  const typing = (event) => {
    if (event.target.closest?.(".st-key-reviewer")) localStorage.setItem(TYPED, event.target.value);
  };
  // Streamlit sends nothing for Enter in a field that holds what the server put there, as after a refresh.
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
    // A browser that keeps nothing: the page asks for the name.
    return;
  }
  document.addEventListener("input", typing);
  document.addEventListener("keydown", entering);
  return () => {
    document.removeEventListener("input", typing);
    document.removeEventListener("keydown", entering);
  };
}
