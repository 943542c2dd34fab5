import polars as pl

from pamer_lab import figures
from pamer_lab.figures.growth import MOST_LINES, drawn_traces
from pamer_lab.figures.theme import LIGHT


def test_a_line_of_one_trace_tells_its_name_as_text() -> None:
    turns = pl.DataFrame({"policy": ["base"] * 2, "trace_id": ["t-1"] * 2, "t": [0, 1], "active_tokens": [5, 9], "raw_tokens": [5, 9]})
    means = pl.DataFrame({"policy": ["base"] * 2, "t": [0, 1], "mean_active": [5.0, 9.0], "low": [5, 9], "high": [5, 9], "running": [1, 1]})
    figure = figures.mean_context(means, ["base"], LIGHT, singles=turns, names={"t-1": "<b>x</b> %{y}"}, reference=False)
    (line,) = [trace for trace in figure.data if trace.meta]
    assert line.meta == "&lt;b&gt;x&lt;/b&gt; %{y}" and line.hovertemplate.startswith("%{meta}<br>base, turn")
    assert figure.layout.hovermode == "closest"


def test_every_policy_keeps_the_same_lines() -> None:
    count = MOST_LINES // 2 + 10
    names = [f"t-{number // 2:03d}" for number in range(2 * count)]
    runs = pl.DataFrame({"policy": ["a", "b"] * count, "trace_id": names, "turns": [int(name[2:]) for name in names]})
    drawn = drawn_traces(runs)
    assert len(drawn) == MOST_LINES // 2 and drawn[0] == names[-1], "the longest first"
    assert sorted(drawn_traces(runs.head(60))) == sorted({*names[:60]}), "all where there is room"
