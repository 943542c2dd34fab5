"""The Arena page: empty it says how to begin; played it shows the paper's table, charts and outcomes, marked as simulated."""

import msgspec
import pytest

from pamer_lab.arena.plan import Plan
from pamer_lab.arena.reader import Reader
from pamer_lab.arena.running import play_arena
from pamer_lab.arena.store import INFO, ArenaStore
from pamer_lab.reviewer_mode import READONLY_VARIABLE
from pamer_lab.ui.arena.tables import BADGE
from pamer_lab.workspace import Workspace
from tests.pages.conftest import Visit, charts, texts
from tests.pages.test_hostile_run import EVIL, live

PAGE = "pages/arena.py"


def test_an_empty_arena_offers_to_play(visit: Visit, workspace: Workspace) -> None:
    app = visit(PAGE)
    assert not app.exception and charts(app) == [] and app.info


def test_a_reviewer_is_not_told_to_start_one(visit: Visit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = visit(PAGE).info[0].value
    monkeypatch.setenv(READONLY_VARIABLE, "1")
    app = visit(PAGE)
    assert not app.button and app.info[0].value != offered and offered.startswith(app.info[0].value)


def test_what_an_arenas_file_says_is_text(visit: Visit, workspace: Workspace) -> None:
    info = play_arena(Plan(tasks=1, level="1-0-0", policies=()), workspace, agent=Reader())
    store = ArenaStore(workspace)
    evil = msgspec.structs.replace(info, agent=f"command:{EVIL}", level=EVIL, tokenizer=EVIL)
    (store.folder / info.arena_id / INFO).write_bytes(msgspec.json.encode(evil))
    app = visit(PAGE)
    assert not app.exception and "outside.example" in texts(app)
    assert not any(word in live(app) for word in ("outside.example", "<img", ":red["))


def test_a_played_arena_shows_results_marked_as_simulated(visit: Visit, workspace: Workspace) -> None:
    play_arena(Plan(tasks=2, level="2-1-1", policies=("sliding-window:2",)), workspace, agent=Reader())
    app = visit(PAGE)
    assert not app.exception and BADGE in texts(app)
    assert charts(app) == ["arena-cost", "arena-tokens"]
    assert list(app.dataframe[0].value["Policy"]) == ["base", "sliding-window:2", "oracle (bound)", "none (bound)"]
    assert "sliding-window:2" in app.dataframe[2].value.columns
