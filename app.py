"""The router with the list of pages, and the server they run on. Start it with `make run` or `pamer-lab app`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from starlette.middleware import Middleware

from pamer_lab.ui.shared.gate import Gate, announced, mode_of_this_start
from pamer_lab.ui.shared.page import ICON, ROUTED
from pamer_lab.ui.shared.server_start import Preload, send_at_once, warm_up, warmed

if __name__ != "__main__":  # `streamlit run` imports this file once for the server, and runs it for each view of a page
    warming = warm_up()

    @asynccontextmanager
    async def ready(server: Any) -> AsyncIterator[None]:
        """Wait for the home page, within limits, before the link to it is printed and the first request is answered."""
        send_at_once()
        await warmed(warming)
        async with announced(server):
            yield

    app = st.App(__file__, middleware=[Middleware(Gate, mode=mode_of_this_start()), Middleware(Preload)], lifespan=ready)
else:
    st.session_state[ROUTED] = True
    st.set_page_config(page_title="PaMER Lab", page_icon=str(ICON), layout="wide")
    st.navigation(
        {
            "": [
                st.Page("pages/traces.py", title="Traces", icon=":material/list_alt:", default=True),
                st.Page("pages/trace.py", title="Transcript", icon=":material/article:", url_path="trace"),
                st.Page("pages/replay.py", title="Replay", icon=":material/replay:", url_path="replay"),
                st.Page("pages/growth.py", title="Context growth", icon=":material/trending_up:", url_path="growth"),
                st.Page("pages/live.py", title="Live", icon=":material/sensors:", url_path="live"),
                st.Page("pages/arena.py", title="Arena", icon=":material/stadium:", url_path="arena"),
                st.Page("pages/audit.py", title="Audit", icon=":material/fact_check:", url_path="audit"),
            ],
            "Studies": [
                st.Page("pages/signals.py", title="Layerwise signals", icon=":material/layers:", url_path="signals"),
                st.Page("pages/contexts.py", title="Compact contexts", icon=":material/compress:", url_path="contexts"),
                st.Page("pages/published.py", title="Published results", icon=":material/menu_book:", url_path="published"),
            ],
        },
        position="top",
    ).run()
