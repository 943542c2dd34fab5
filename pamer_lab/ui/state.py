"""State in the URL: a link opens the same view in a fresh browser.

Widgets that can be bound (`bind="query-params"`) keep their own value in the URL; this module keeps what no widget can
bind, such as the trace's id. Streamlit empties the URL on a page change, so the session's last choice is remembered
beside it. What always holds: the URL wins over the session, and no trace text enters a URL.
"""

import streamlit as st


def chosen(name: str) -> str:
    """The value in the URL; else what this session chose last; else nothing."""
    return st.query_params.get(name) or str(st.session_state.get(f"chosen:{name}", ""))


def choose(name: str, value: str) -> None:
    """Put a value into the URL and remember it for the other pages."""
    st.session_state[f"chosen:{name}"] = value
    if st.query_params.get(name) != value:
        st.query_params[name] = value


def out_of_range(name: str, limit: int) -> int | None:
    """The number a link asks for when it is not below `limit`; a bound widget would drop it silently."""
    asked = st.query_params.get(name, "")
    return int(asked) if asked.isascii() and asked.isdigit() and int(asked) >= limit else None
