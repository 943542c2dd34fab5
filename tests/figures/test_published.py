import pytest

from pamer_lab import figures
from pamer_lab.analysis.published import names, table
from pamer_lab.figures.labels import box_of, ranges, to_pixels
from pamer_lab.figures.theme import LIGHT


@pytest.mark.parametrize("name", names())
def test_every_table_has_a_chart_or_nothing_to_draw(name: str) -> None:
    figure = figures.published_table(table(name), LIGHT)
    assert figure is not None or name in ("case_events", "controller_settings", "fallbacks", "paired", "pilot40")


def test_arrows_lead_from_base_over_pamer_to_pamer_plus_for_each_backbone() -> None:
    figure = figures.published_table(table("cross_model"), LIGHT)
    assert len(figure.layout.annotations) == 10


def test_no_arrow_crosses_the_name_of_the_base_agent() -> None:
    figure = figures.published_table(table("full_benchmark"), LIGHT)
    points = [(trace.x[0], trace.y[0]) for trace in figure.data]
    size, area = (1_000.0, 340.0), ranges(points)
    named = next(trace for trace in figure.data if trace.text[0].startswith("DeepSeek"))
    box = box_of(named.textposition, to_pixels([(named.x[0], named.y[0])], size, area)[0], named.text[0])
    for arrow in figure.layout.annotations:
        ends = to_pixels([(arrow.ax, arrow.ay), (arrow.x, arrow.y)], size, area)
        (x, y), (to_x, to_y) = ends
        on_it = [(x + part / 1_000 * (to_x - x), y + part / 1_000 * (to_y - y)) for part in range(1_001)]
        assert not any(box.left < a < box.right and box.top < b < box.bottom for a, b in on_it)
