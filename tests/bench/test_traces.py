from pathlib import Path

import pytest

from pamer_lab.bench import traces
from pamer_lab.cli import main
from pamer_lab.commands.bench import OVER_TRACES
from pamer_lab.decisions import Decision
from pamer_lab.policies.interface import History
from pamer_lab.policies.registry import DEFAULT_POLICIES
from pamer_lab.policies.sliding_window import SlidingWindow
from pamer_lab.trajectory.formats.native import to_native
from tests.runs.making import long_trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in (4, 12):
        (tmp_path / f"{number}.json").write_bytes(to_native(long_trace(number, words=200, trace_id=f"t-{number}")))
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


def test_every_trace_goes_through_every_policy_to_its_last_turn(folder: Path) -> None:
    ratios, details = traces.run([folder])
    assert ratios == {"traces": 2, "policies": 7, "runs": 14, "turns": 16, "ledger_violations": 0, "failures": 0}
    assert tuple(details["policies"]) == tuple(DEFAULT_POLICIES) and {row["turns"] for row in details["policies"].values()} == {16}
    assert details["policies"]["pamer"]["compress"] > 0 and details["longest_turns"] == 12
    assert traces.PROBE.name in details["parts"] and "broken.json" in details["rejected"][0]


def test_a_policy_that_loses_blocks_is_told_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless:
        def turn(self, history: History) -> Decision:
            items = [*history.head(), *history.raw([(0, history.t)])]
            return Decision("pass", "keeps all", tuple(items[::-1]))

        def resume(self, answers: object) -> None:
            pass

    monkeypatch.setattr(SlidingWindow, "start", lambda self, resources: Careless())
    ratios, details = traces.run([folder])
    assert ratios["ledger_violations"] == 2 and ratios["runs"] == 12
    assert "sliding-window:5" in details["violations"][0]


def test_other_benches_take_no_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "blocks", str(folder)]) == 2
    assert ", ".join(OVER_TRACES) in capsys.readouterr().err
