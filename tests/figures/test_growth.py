import polars as pl

from pamer_lab import figures
from pamer_lab.figures.growth import drawn_traces
from pamer_lab.figures.theme import LIGHT


def test_a_line_of_one_trace_tells_its_name_as_text() -> None:
    turns = pl.DataFrame({"policy": ["base"] * 2, "trace_id": ["t-1"] * 2, "t": [0, 1], "active_tokens": [5, 9], "raw_tokens": [5, 9]})
    means = pl.DataFrame({"policy": ["base"] * 2, "t": [0, 1], "mean_active": [5.0, 9.0], "low": [5, 9], "high": [5, 9], "running": [1, 1]})
    figure = figures.mean_context(means, ["base"], LIGHT, singles=turns, names={"t-1": "<b>x</b> %{y}"}, reference=False)
    (line,) = [trace for trace in figure.data if trace.meta]
    assert line.meta == "&lt;b&gt;x&lt;/b&gt; %{y}" and line.hovertemplate.startswith("%{meta}<br>base, turn")
    assert figure.layout.hovermode == "closest"


def test_every_policy_keeps_the_same_lines() -> None:
    runs = pl.DataFrame({"policy": ["a", "b"] * 40, "trace_id": [f"t-{number // 2:02d}" for number in range(80)]})
    assert drawn_traces(runs) == [f"t-{number:02d}" for number in range(30)]
