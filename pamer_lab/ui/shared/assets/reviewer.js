// Keeps the reviewer's name in this browser, so that a refresh does not forget it. It is never sent anywhere else than to this page.

const KEY = "pamer-lab-reviewer";

export default function ({ data, setTriggerValue }) {
  try {
    if (data.name) localStorage.setItem(KEY, data.name);
    else if (data.forget) localStorage.removeItem(KEY);
    else if (localStorage.getItem(KEY)?.trim()) setTriggerValue("remembered", localStorage.getItem(KEY));
  } catch {
    // A browser that keeps nothing: the page asks for the name.
  }
}
