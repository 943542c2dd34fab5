"""The link to what is on the page: all of a page's state stands in its address."""

import streamlit as st


def share() -> None:
    """A panel with the link."""
    panel = st.popover("Share", icon=":material/link:", key="share", on_change="rerun")
    if not panel.open:
        return
    with panel:
        query = "&".join(f"{name}={value}" for name in st.query_params for value in st.query_params.get_all(name))
        st.caption("This link opens the same trace, policies, turn and settings. Whoever opens it needs the same trace in the workspace.")
        st.code(f"{(st.context.url or '').partition('?')[0]}?{query}", language=None, wrap_lines=True)
