from pamer_lab.replay.engine import replay
from pamer_lab.ui.run_charts import WINDOW, absent_spans, context_figure, ledger_figure, window
from pamer_lab.ui.theme import DARK, LIGHT
from pamer_lab.workspace import Workspace
from tests.replay.making import long_trace


def test_runs_of_absent_blocks_are_found_wherever_they_stand() -> None:
    assert absent_spans("..A.S..") == [(0, 2), (3, 4), (5, 7)] and absent_spans("ASRX") == [] and absent_spans("") == []


def test_the_ledger_hatches_what_is_gone_and_can_be_clicked_at_every_turn(workspace: Workspace) -> None:
    run = replay(long_trace(9), "sliding-window:2", workspace)
    for colours in (LIGHT, DARK):
        figure = ledger_figure(run, 5, colours)
        hatched = [trace for trace in figure.data if trace.type == "bar" and trace.marker.pattern.shape == "/" and trace.x != (None,)]
        assert sum(sum(trace.y) for trace in hatched) == sum(turn.states.count(".") for turn in run.turns)
        (clicks,) = [trace for trace in figure.data if trace.type == "scatter"]
        assert [entry[1] for entry in clicks.customdata] == list(range(9)) and clicks.hoverinfo == "none"
        assert {trace.name for trace in figure.data if trace.showlegend is None and trace.name} == {"A active", "· absent"}


def test_every_turn_is_in_exactly_one_window() -> None:
    assert window(3, 2) == range(3) and window(WINDOW + 5, WINDOW + 1) == range(WINDOW, WINDOW + 5)


def test_the_raw_history_is_drawn_only_where_it_is_asked_for(workspace: Workspace) -> None:
    run = replay(long_trace(6), "sliding-window:2", workspace)
    assert "raw history" not in {trace.name for trace in context_figure([run], 0, LIGHT).data}
    (raw,) = [trace for trace in context_figure([run], None, LIGHT, raw=True).data if trace.name == "raw history"]
    assert list(raw.y) == [turn.raw_tokens for turn in run.turns]
