// The browser's Back leaves the page in one press.
//
// Streamlit adds an entry to the browser's history whenever a page writes its URL, such as at every turn. Here an entry for the same page
// replaces the one before it. Entries made before this script was loaded are skipped on the way back.

const MARK = "pamerHistory";

export default function () {
  if (window[MARK]) return;
  window[MARK] = true;
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  let { pathname, search } = location;
  const note = () => ({ pathname, search } = location);

  history.pushState = (state, title, url) => {
    const same = url != null && new URL(url, location.href).pathname === location.pathname;
    (same ? replace : push)(state, title, url);
    note();
  };
  history.replaceState = (state, title, url) => {
    replace(state, title, url);
    note();
  };
  window.addEventListener("popstate", () => {
    const skip = location.pathname === pathname && location.search !== search;
    note();
    if (skip) history.back();
  });
}
