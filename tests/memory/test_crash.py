from pamer_lab.bench.crash import run


def test_a_process_killed_at_random_moments_leaves_no_partial_memory_and_loses_no_block() -> None:
    ratios, details = run(kills=4, seed=1)
    assert ratios == {"kills": 4, "partial_memories": 0, "lost_blocks": 0}
    assert details["memories"] > 0 and details["goes_on"] and not details["memories_that_vanished"]
