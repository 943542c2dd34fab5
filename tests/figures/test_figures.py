"""The public charts: importable without a dashboard, and drawn in light colours by default."""

import subprocess
import sys

import pytest

from pamer_lab import figures
from pamer_lab.analysis.compact import tradeoff
from pamer_lab.analysis.published import sample_study
from pamer_lab.figures.compact import ROOM, WIDEST, name_positions, short_name, span
from pamer_lab.figures.labels import box_of, to_pixels
from pamer_lab.figures.recorded import NAME, OURS
from pamer_lab.figures.theme import DARK, LIGHT
from pamer_lab.runs.engine import replay
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.workspace import Workspace
from tests.runs.making import long_trace


def test_figures_import_neither_streamlit_nor_plotly_before_one_is_built() -> None:
    program = "import sys; import pamer_lab.figures; sys.exit(' '.join({'streamlit', 'plotly'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_notebook_needs_runs_alone(workspace: Workspace) -> None:
    runs = [replay(long_trace(9), policy, workspace) for policy in ("base", "sliding-window:2")]
    assert {line.name for line in figures.context(runs).data} >= {"base", "sliding-window:2"}
    assert figures.context(runs).data[0].line.color == LIGHT["base"] != figures.context(runs, DARK).data[0].line.color
    assert len(figures.events(runs).data) >= 2
    assert list(figures.ledger(runs[1]).data[-1].x) == list(range(9))


@pytest.mark.parametrize("metric", ["auroc", "logit_gap"])
def test_a_notebook_needs_a_study_alone(metric: figures.layerwise.Metric) -> None:
    assert figures.layers(sample_study("layerwise"), metric).data


def test_the_sample_study_of_compact_contexts_is_drawn() -> None:
    points = tradeoff(sample_study("compact"))
    figure = figures.tradeoff(points)
    assert figure.data and figure.layout.yaxis.range == figure.layout.yaxis2.range, "marks at the same height mean the same"
    heights = span(points, published=True)
    for target in TARGETS:
        own = [point for point in points if point["target"] == target and point["auroc"] is not None]
        found = list(zip(own, name_positions(own, heights, published=True), strict=True))
        assert sum(bool(position) for _, position in found) > len(own) / 2
        marks = [(point["published_tokens_pct"], point["published_auroc"]) for point in own if point["published_auroc"] is not None]
        area = ((0, WIDEST), heights)
        for point, position in found:
            if position:
                (at,) = to_pixels([(point["tokens_pct"], point["auroc"])], ROOM, area)
                box = box_of(position, at, short_name(point["label"]))
                for x, y in to_pixels(marks, ROOM, area):
                    assert not (box.left < x < box.right and box.top < y < box.bottom), "a name lies on a published mark"


def test_nothing_to_draw_is_an_empty_chart() -> None:
    assert [len(figure.data[0].y) for figure in (figures.history([]), figures.blocks([]))] == [0, 0]
    assert not figures.context([]).data and not figures.events([]).data


def test_a_trace_is_drawn_from_its_sizes_with_markup_as_text() -> None:
    figure = figures.history([3, 9, 14], compressions=[1], recalls=[2])
    assert [list(line.y) for line in figure.data] == [[3, 9, 14], [9], [14]]
    assert [line.marker.symbol for line in figure.data[1:]] == ["triangle-down", "triangle-up"]
    assert figures.blocks([6, 5], names=["<b>", "read"]).data[0].hovertext == ("6 tokens<br>&lt;b&gt;", "5 tokens<br>read")


def test_the_transcripts_chart_names_its_lines_where_the_source_recorded_its_own_context() -> None:
    alone, both = figures.history([1, 2, 3]), figures.history([1, 2, 3], recorded=[10, None, 30])
    assert not alone.layout.showlegend
    assert both.layout.showlegend and [line.name for line in both.data] == [OURS, NAME]
    once = figures.history([1, 2, 3], recorded=[10, None, None])
    assert [figure.data[1].mode for figure in (both, once)] == ["lines", "markers"], "a line of one point cannot be seen"
