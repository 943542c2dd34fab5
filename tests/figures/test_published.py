import pytest

from pamer_lab import figures
from pamer_lab.analysis.published import names, table
from pamer_lab.figures.theme import LIGHT


@pytest.mark.parametrize("name", names())
def test_every_table_has_a_chart_or_nothing_to_draw(name: str) -> None:
    figure = figures.published_table(table(name), LIGHT)
    assert figure is not None or name in ("case_events", "controller_settings", "fallbacks", "paired", "pilot40")


def test_arrows_lead_from_base_over_pamer_to_pamer_plus_for_each_backbone() -> None:
    figure = figures.published_table(table("cross_model"), LIGHT)
    assert len(figure.layout.annotations) == 10
