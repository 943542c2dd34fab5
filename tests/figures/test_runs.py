"""The charts of a replay: what they hold, and that none of them holds the open turn."""

from msgspec.structs import replace as changed

from pamer_lab import figures
from pamer_lab.decisions import LETTERS
from pamer_lab.figures.ledger import LETTERED, NO_BLOCK, spans_of
from pamer_lab.figures.runs import FEW, MANY, WINDOW, block_words, window
from pamer_lab.figures.theme import DARK, LIGHT, look
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.runs.values import Run
from pamer_lab.runs.whatif import Changes, WhatIfRun
from pamer_lab.workspace import Workspace
from tests.runs.making import PARTS, long_trace


def test_neighbours_in_one_state_are_one_span_wherever_they_stand() -> None:
    assert spans_of("..A.S..", ".") == [(0, 2), (3, 4), (5, 7)] and spans_of("ASRX", ".") == [] and spans_of("", "A") == []
    assert spans_of("AA.", "A", single=True) == [(0, 1), (1, 2)]


def test_the_ledger_draws_every_block_in_its_state_hatches_what_is_gone_and_can_be_clicked_at_every_turn(workspace: Workspace) -> None:
    for turns in (9, LETTERED + 5):
        run = replay(long_trace(turns, trace_id=f"t-{turns}"), "sliding-window:2", workspace)
        for colours in (LIGHT, DARK):
            figure = figures.ledger(run, window(turns, 5), colours)
            areas = {trace.name: trace for trace in figure.data if trace.fill == "toself"}
            assert set(areas) == {"A active", "· absent"}
            for name, letter in (("A active", "A"), ("· absent", ".")):
                x, y = areas[name].x, areas[name].y
                covered = sum(round((x[at + 1] - x[at]) * (y[at + 2] - y[at])) for at in range(0, len(x), 6))
                assert covered == sum(turn.states.count(letter) for turn in run.turns)
            assert areas["· absent"].fillpattern.shape == "/" and areas["A active"].fillpattern.shape is None
            clicks = figure.data[-1]
            assert list(clicks.x) == list(range(turns))
            words = f"{block_words(0, 3)}: {LETTERS['.']}<br>{block_words(3, 5)}: {LETTERS['A']}"
            assert (clicks.hovertext[0], clicks.hovertext[5]) == (NO_BLOCK, words)


def test_the_strip_has_a_mark_for_every_turn_of_every_policy(workspace: Workspace) -> None:
    runs = [replay(long_trace(12), policy, workspace) for policy in ("base", "sliding-window:2")]
    figure = figures.events(runs, range(4, 12), LIGHT)
    for run in runs:
        assert sorted(t for trace in figure.data if trace.name == run.head.policy for t in trace.x) == list(range(4, 12))


def test_every_turn_is_in_exactly_one_window() -> None:
    assert window(3, 2) == range(3) and window(WINDOW + 5, WINDOW + 1) == range(WINDOW, WINDOW + 5)


def test_the_raw_history_is_drawn_only_where_it_is_asked_for(workspace: Workspace) -> None:
    run = replay(long_trace(6), "sliding-window:2", workspace)
    assert "raw history" not in {trace.name for trace in figures.context([run], LIGHT).data}
    (raw,) = [trace for trace in figures.context([run], LIGHT, raw=True).data if trace.name == "raw history"]
    assert list(raw.y) == [turn.raw_tokens for turn in run.turns]


def test_a_what_if_line_above_all_runs_stays_inside_the_chart(workspace: Workspace) -> None:
    run = replay(long_trace(12), "pamer:minimum=60:retained=1", workspace, ReplayOptions(device="cpu", parts=PARTS))
    never = WhatIfRun(run).ask(Changes(minimum=100_000))
    high = int(never.active_tokens.max())
    assert high > max(turn.active_tokens for turn in run.turns)
    assert figures.context([run], LIGHT, whatif=never).layout.yaxis.range[1] > high


def test_policies_of_one_kind_share_their_colour_and_differ_in_dash_and_symbol() -> None:
    for kind in (["sliding-window:5", "sliding-window:10", "sliding-window:20"], ["pamer-no-recall", "pamer-no-compression"]):
        looks = [look(policy, ["base", *kind, "pamer"]) for policy in kind]
        assert len({entry.meaning for entry in looks}) == 1
        assert len({entry.dash for entry in looks}) == len({entry.symbol for entry in looks}) == len(kind)
        assert looks[0] == look(kind[0]), "the first keeps the look of its kind"


def test_long_lines_of_pamer_plus_carry_circles_and_many_recalls_leave_the_line_its_colour(workspace: Workspace) -> None:
    base = replay(long_trace(FEW + 10), "base", workspace)
    run = Run(changed(base.head, policy="pamer+"), tuple(changed(turn, action="recall") for turn in base.turns))
    marks, line = figures.context([run], LIGHT).data
    assert line.mode == "lines+markers" and line.marker.symbol == "circle" and 0 < line.marker.maxdisplayed < FEW
    assert marks.marker.symbol == "triangle-up-open" and len(marks.x) == len(run.turns) > MANY
    assert figures.context([base], LIGHT).data[0].mode == "lines"
    assert line.hovertext[0] == "▲ recall, "


def test_a_short_run_has_no_ticks_between_its_turns(workspace: Workspace) -> None:
    run = replay(long_trace(3), "base", workspace)
    drawn = [figures.context([run], LIGHT), figures.events([run], window(3, 0), LIGHT), figures.ledger(run, window(3, 0), LIGHT)]
    assert {figure.layout.xaxis.dtick for figure in drawn} == {1} and drawn[2].layout.yaxis.dtick == 1


def test_fifteen_points_of_one_colour_have_fifteen_symbols() -> None:
    kind = ["pamer", *(f"pamer:vote={votes}" for votes in range(1, 6)), *(f"pamer:top={count}" for count in range(1, 10))]
    assert len({look(policy, kind).symbol for policy in kind}) == 15
