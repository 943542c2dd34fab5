"""The Arena page: empty it says how to begin; played it shows the paper's table, charts and outcomes, marked as simulated."""

from pamer_lab.arena.plan import Plan
from pamer_lab.arena.reader import Reader
from pamer_lab.arena.running import play_arena
from pamer_lab.ui.arena.tables import BADGE
from pamer_lab.workspace import Workspace
from tests.pages.conftest import Visit, charts, texts

PAGE = "pages/arena.py"


def test_an_empty_arena_offers_to_play(visit: Visit, workspace: Workspace) -> None:
    app = visit(PAGE)
    assert not app.exception and charts(app) == [] and app.info


def test_a_played_arena_shows_results_marked_as_simulated(visit: Visit, workspace: Workspace) -> None:
    play_arena(Plan(tasks=2, level="2-1-1", policies=("sliding-window:2",)), workspace, agent=Reader())
    app = visit(PAGE)
    assert not app.exception and BADGE in texts(app)
    assert charts(app) == ["arena-cost", "arena-tokens"]
    assert list(app.dataframe[0].value["Policy"]) == ["base", "sliding-window:2", "oracle (bound)", "none (bound)"]
    assert "sliding-window:2" in app.dataframe[2].value.columns
