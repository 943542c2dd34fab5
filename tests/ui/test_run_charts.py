"""The charts of a replay: what they hold, and that none of them holds the open turn."""

from pamer_lab.replay.engine import replay
from pamer_lab.ui.run_charts import LETTERED, WINDOW, context_figure, ledger_figure, spans_of, strip_figure, window
from pamer_lab.ui.theme import DARK, LIGHT
from pamer_lab.workspace import Workspace
from tests.replay.making import long_trace


def test_neighbours_in_one_state_are_one_span_wherever_they_stand() -> None:
    assert spans_of("..A.S..", ".") == [(0, 2), (3, 4), (5, 7)] and spans_of("ASRX", ".") == [] and spans_of("", "A") == []
    assert spans_of("AA.", "A", single=True) == [(0, 1), (1, 2)]


def test_the_ledger_draws_every_block_in_its_state_hatches_what_is_gone_and_can_be_clicked_at_every_turn(workspace: Workspace) -> None:
    for turns in (9, LETTERED + 5):
        run = replay(long_trace(turns, trace_id=f"t-{turns}"), "sliding-window:2", workspace)
        for colours in (LIGHT, DARK):
            figure = ledger_figure(run, window(turns, 5), colours)
            areas = {trace.name: trace for trace in figure.data if trace.fill == "toself"}
            assert set(areas) == {"A active", "· absent"}
            for name, letter in (("A active", "A"), ("· absent", ".")):
                x, y = areas[name].x, areas[name].y
                covered = sum(round((x[at + 1] - x[at]) * (y[at + 2] - y[at])) for at in range(0, len(x), 6))
                assert covered == sum(turn.states.count(letter) for turn in run.turns)
            assert areas["· absent"].fillpattern.shape == "/" and areas["A active"].fillpattern.shape is None
            clicks = figure.data[-1]
            assert list(clicks.x) == list(range(turns))
            assert clicks.hovertext[0] == "no earlier block" and clicks.hovertext[5] == "blocks 0 to 2: absent<br>blocks 3 to 4: active"


def test_the_strip_has_a_mark_for_every_turn_of_every_policy(workspace: Workspace) -> None:
    runs = [replay(long_trace(12), policy, workspace) for policy in ("base", "sliding-window:2")]
    figure = strip_figure(runs, range(4, 12), LIGHT)
    for run in runs:
        assert sorted(t for trace in figure.data if trace.name == run.head.policy for t in trace.x) == list(range(4, 12))


def test_every_turn_is_in_exactly_one_window() -> None:
    assert window(3, 2) == range(3) and window(WINDOW + 5, WINDOW + 1) == range(WINDOW, WINDOW + 5)


def test_the_raw_history_is_drawn_only_where_it_is_asked_for(workspace: Workspace) -> None:
    run = replay(long_trace(6), "sliding-window:2", workspace)
    assert "raw history" not in {trace.name for trace in context_figure([run], LIGHT).data}
    (raw,) = [trace for trace in context_figure([run], LIGHT, raw=True).data if trace.name == "raw history"]
    assert list(raw.y) == [turn.raw_tokens for turn in run.turns]
