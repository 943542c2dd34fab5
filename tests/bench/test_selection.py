from pamer_lab.bench.selection import run

CONTRACT = {"f1", "precision", "recall", "token_share", "f1_whole_summary", "f1_random", "f1_recent"}


def test_the_default_router_has_the_contracts_keys_and_the_one_over_the_archive_stands_beside_it() -> None:
    ratios, details = run(1, 1)
    assert set(ratios) >= CONTRACT | {"f1_archive", "precision_archive", "recall_archive", "token_share_archive"}
    assert all(0 <= value <= 1 for value in ratios.values())
    assert (details["index"]["router"], details["archive"]["router"]) == ("embedded-3 index", "embedded-3 archive")
    assert details["decision_points"] >= details["index"]["no_need"]["points"] > 0
