"""A demo trace through all policies with the real heads on the embedded model, as `pamer-lab replay` runs it."""

import json
from pathlib import Path

import pytest

from pamer_lab.cli import main
from pamer_lab.models.embedded import is_prepared
from pamer_lab.policies.registry import DEFAULT_POLICIES
from pamer_lab.workspace import Workspace

DEMO = Path(__file__).resolve().parents[2] / "sample_traces" / "demo" / "museum-case.json"
TURN_LIMIT = 8
POLICIES = ",".join(f"{name}:minimum=500" if name.startswith("pamer") else name for name in DEFAULT_POLICIES)


@pytest.mark.weights
def test_the_embedded_profile_replays_a_demo_trace_under_all_seven_policies(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert is_prepared()
    assert main(["replay", str(DEMO), "--policy", POLICIES, "--turn-limit", str(TURN_LIMIT), "--json"]) == 0
    runs = {run["policy"].partition(":")[0]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    assert len(runs) == 7
    for run in runs.values():
        assert run["tokens_kind"] == "measured" and run["turn_limit"] == TURN_LIMIT
        for turn in run["turns"]:
            assert sum(item["tokens"] for item in turn["items"]) == turn["active_tokens"] and not turn["error"]
            assert len(turn["block_states"]) == turn["t"]
    pamer = runs["pamer"]
    assert [bool(turn["logits"]) for turn in pamer["turns"]] == [False] * 3 + [True] * 5
    assert all(len(turn["thresholds"]) == 5 for turn in pamer["turns"] if turn["logits"])
    # The heads read prefix and recent blocks, which are the same under every PaMER policy.
    for other in ("pamer+", "pamer-no-recall", "pamer-no-compression"):
        assert [turn["logits"] for turn in runs[other]["turns"]] == [turn["logits"] for turn in pamer["turns"]]
    assert "SmolLM2" in next(iter(pamer["totals"]["local_work"]["features"]["calls"]))
    assert main(["whatif", pamer["run_id"], "--json"]) == 0
    asked = json.loads(capsys.readouterr().out)
    assert asked["verified"] == {"matches": TURN_LIMIT, "of": TURN_LIMIT} and asked["changed_turns"] == []
