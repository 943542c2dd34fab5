"""A few hundred mutants per run; `pamer-lab bench fuzz` does 10,000, with pages."""

from pathlib import Path

from pamer_lab.bench.fuzz import SHARES, fuzz, seed_files, targets

PROJECT = Path(__file__).resolve().parents[2]
WITHOUT_PAGES = tuple(name for name in SHARES if name != "pages")


def test_no_mutant_of_our_own_files_fails(tmp_path: Path) -> None:
    seeds = [*seed_files(PROJECT / "sample_traces"), *seed_files(PROJECT / "tests" / "fixtures")]
    assert seeds
    outcome = fuzz(targets(seeds, tmp_path, WITHOUT_PAGES), 400)
    assert not outcome.failures
    for name in ("traces", "run files", "review files"):
        assert outcome.counts[f"{name}: rejected"] and outcome.counts[f"{name}: read"], (
            "the mutations break some files and leave some readable"
        )


def test_no_mutant_of_a_real_file_fails(real_traces: Path, tmp_path: Path) -> None:
    outcome = fuzz(targets(list(seed_files(real_traces)), tmp_path, ("traces",)), 300, seed=1)
    assert not outcome.failures
