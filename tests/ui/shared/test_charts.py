"""Figures are built once for what they show, in each theme, and reach the browser as plotly itself would send them."""

import json
from typing import Any

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from pamer_lab.figures.theme import Meaning
from pamer_lab.ui.shared import charts as module
from pamer_lab.ui.shared.charts import drawing, drawing_or_none


def figure(colours: dict[Meaning, str]) -> Any:
    made = go.Figure(layout={"height": 100})
    made.add_scatter(x=[1, 2, 3], y=[3.0, None, 1.5], name="a", line={"color": colours["pamer"]})
    return made


def test_a_figure_is_built_once_for_what_it_shows_and_once_more_in_the_other_theme(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def build(colours: dict[Meaning, str]) -> Any:
        built.append(colours["pamer"])
        return figure(colours)

    first = drawing("test-once", ("r-1", 5), build)
    assert drawing("test-once", ("r-1", 5), build) is first and len(built) == 1
    assert drawing("test-once", ("r-1", 6), build) is not first and len(built) == 2
    monkeypatch.setattr(module, "is_dark", lambda: True)
    monkeypatch.setattr("pamer_lab.ui.shared.theme.is_dark", lambda: True)
    drawing("test-once", ("r-1", 5), build)
    assert len(built) == 3 and built[2] != built[0]
    assert drawing_or_none("test-none", 1, lambda colours: None) is None


def test_the_browser_gets_the_same_chart_as_from_plotly_itself() -> None:
    def page() -> None:
        import streamlit as st

        from pamer_lab.ui.shared.charts import drawing
        from tests.ui.shared.test_charts import figure

        st.plotly_chart(drawing("test-same", 1, figure), key="own")

    app = AppTest.from_function(page).run()
    assert not app.exception
    (chart,) = app.get("plotly_chart")
    from pamer_lab.figures.theme import LIGHT

    sent = json.loads(chart.proto.spec)
    assert sent["data"] == json.loads(figure(LIGHT).to_json())["data"]
    assert sent["layout"]["height"] == 100


def test_a_part_of_a_page_shows_errors_as_sentences() -> None:
    def page() -> None:
        import streamlit as st

        from pamer_lab.errors import LabError
        from pamer_lab.ui.shared.page import part

        @part
        def failing() -> None:
            st.caption("before")
            raise LabError("the store is away; bring it back")

        failing()
        st.caption("after")

    app = AppTest.from_function(page).run()
    assert not app.exception
    assert "the store is away" in app.error[0].value
    assert [caption.value for caption in app.caption] == ["before", "after"]
