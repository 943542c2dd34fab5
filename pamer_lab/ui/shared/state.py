"""State in the URL: a link opens the same view in a fresh browser.

Bound widgets (`bind="query-params"`) keep their own value in the URL; this module does it for everything else, such as the trace's id.
Streamlit clears URL and widgets on a page change, so the session remembers its last choices.
Invariant: the URL wins over the session, and no trace text enters a URL.
"""

from collections.abc import Sequence

import streamlit as st


def chosen(name: str) -> str:
    """The value in the URL; else what this session chose last; else nothing."""
    return st.query_params.get(name) or str(st.session_state.get(f"chosen:{name}", ""))


def remember(name: str, value: str) -> None:
    """What the other pages open with, without a word in this page's URL."""
    st.session_state[f"chosen:{name}"] = value


def choose(name: str, value: str) -> None:
    """Put a value into the URL and remember it for the other pages."""
    remember(name, value)
    if st.query_params.get(name) != value:
        st.query_params[name] = value


def settle(name: str, allowed: Sequence[str] | range, otherwise: str | int, *, of: str = "") -> None:
    """Give a widget its value before it is drawn: what it has, else what the URL says, else what it last had, else `otherwise`.

    For widgets whose start depends on the data: a bound one leaves its start out of the URL, and a link would lose it. Where a value
    means something only for one trace, `of` is its id.
    """
    last = f"{name}:{of}"
    if st.session_state.get(name) not in allowed:
        asked: str | int = chosen(last) if name not in st.query_params else st.query_params[name]
        if isinstance(allowed, range):
            asked = int(asked) if isinstance(asked, str) and asked.isascii() and asked.isdigit() else -1
        st.session_state[name] = asked if name not in st.session_state and asked in allowed else otherwise
    remember(last, str(st.session_state[name]))


def start_anew(name: str) -> None:
    """Let go of a widget's value here and in the URL, before another trace is shown in which it means nothing."""
    st.session_state.pop(name, None)
    st.query_params.pop(name, None)


def out_of_range(name: str, limit: int) -> int | None:
    """The number a link asks for when it is not below `limit`; a bound widget would drop it silently.

    Once the widget has a value, the number in the URL is the page's own, perhaps of the trace before.
    """
    asked = st.query_params.get(name, "") if name not in st.session_state else ""
    return int(asked) if asked.isascii() and asked.isdigit() and int(asked) >= limit else None
