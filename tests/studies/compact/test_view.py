"""One decision point side by side: pieces add up, nothing is shown twice, and no model is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from pamer_lab.errors import UnknownNameError
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.studies.compact.registry import all_conditions
from pamer_lab.studies.compact.view import context_at, resources_for
from tests.studies.compact.making import PLANTED, planted, resources, sized


def test_pieces_add_up_to_the_context_and_with_what_is_left_out_to_the_history() -> None:
    found = sized(20, 30, 40, 50, 60)
    for one in all_conditions():
        view = context_at(found, 5, one.name, resources())
        assert sum(piece.tokens for piece in view.pieces) == view.tokens
        assert sorted([*(piece.block for piece in view.pieces if piece.block is not None), *view.left_out]) == [0, 1, 2, 3, 4]
        assert view.full_tokens == 215
        assert [piece.kind for piece in view.pieces][:2] == ["tools", "prefix"]


def test_evidence_has_rank_score_and_text_and_banks_name_their_blocks() -> None:
    view = context_at(planted(), 8, "raw-top3", resources())
    best = next(piece for piece in view.pieces if piece.rank == 1)
    assert (best.kind, best.block) == ("evidence", PLANTED)
    assert "Ottoline Marchbanks" in best.text and best.score
    assert [piece.kind for piece in view.pieces][-2:] == ["recent", "recent"]
    assert context_at(planted(), 8, "bank-recent5", resources()).stored == (2, 3, 4, 5, 6)
    assert context_at(planted(), 8, "gru512", resources()).stored == tuple(range(8))
    assert context_at(planted(), 0, "gru512", resources()).stored == ()
    assert context_at(planted(), 8, "bank-similarity3", resources()).note
    assert context_at(planted(), 0, "bank-uniform5", resources()).stored == ()
    with pytest.raises(UnknownNameError, match="raw-top3"):
        context_at(planted(), 8, "nothing", resources())


def test_the_default_resources_need_no_model_and_take_an_embedder() -> None:
    tools = resources_for(embedder=HashingEmbedder())
    assert context_at(planted(), 8, "embedding-top3", tools).share_pct < 100


def test_looking_at_a_context_imports_no_torch(tmp_path: Path) -> None:
    program = (
        "import sys; from pamer_lab.studies.compact.view import context_at; from tests.studies.compact.making import planted, resources;"
        "context_at(planted(), 8, 'raw-top3', resources()); sys.exit(' '.join({'torch', 'transformers'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
