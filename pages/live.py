"""Live: current and past agent sessions through the proxy, what the model saw of each request, and why."""

import streamlit as st

from pamer_lab.ui.live.sessions import how_to_start, pick_session
from pamer_lab.ui.live.view import follow
from pamer_lab.ui.shared.page import run as run_page
from pamer_lab.ui.shared.prices import choose_prices


def main() -> None:
    title, picker, prices = st.columns([1.2, 6, 1.2], vertical_alignment="bottom")
    title.title("Live")
    with picker:
        session = pick_session()
    if not session:
        how_to_start()
        return
    with prices:
        choose_prices()
    follow(session)


run_page(main)
