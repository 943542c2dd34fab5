"""A few hundred mutants per run; `pamer-lab bench fuzz` does thousands."""

from pathlib import Path

from pamer_lab.bench.fuzz import fuzz, seed_files

PROJECT = Path(__file__).resolve().parents[2]


def test_no_mutant_of_our_own_files_ends_in_a_traceback() -> None:
    seeds = [*seed_files(PROJECT / "sample_traces"), *seed_files(PROJECT / "tests" / "fixtures")]
    assert seeds
    outcome = fuzz(seeds, 300)
    assert not [kind for kind in outcome if kind.startswith("traceback")]
    assert outcome["rejected"] and outcome["read"], "the mutations should break some files and leave some readable"


def test_no_mutant_of_a_real_file_ends_in_a_traceback(real_traces: Path) -> None:
    outcome = fuzz(list(seed_files(real_traces)), 300, seed=1)
    assert not [kind for kind in outcome if kind.startswith("traceback")]
