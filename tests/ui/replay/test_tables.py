"""Downloads of a replay carry what makes their numbers honest."""

import csv

from pamer_lab.runs.values import Run, RunInfo, Turn
from pamer_lab.ui.replay.tables import states_csv, turns_csv


def made(policy: str, *, demo: bool) -> Run:
    head = RunInfo("r", "t", "q", "", policy, "embedded", {}, "characters/4", "estimated", 1, 1, 1, 0, (3,), demo=demo)
    first = Turn("pass", "nothing to do", (), t=0, raw_tokens=9, active_tokens=9, output_tokens=2, cached_tokens=0, states="")
    last = Turn("compress", "full", (), (), 5, t=1, raw_tokens=12, active_tokens=7, output_tokens=2, cached_tokens=1, states="S")
    return Run(head, (first, last))


def test_each_row_says_whether_it_is_demo_data_and_how_tokens_were_counted() -> None:
    rows = list(csv.reader(turns_csv([made("base", demo=False), made("pamer", demo=True)]).splitlines()))
    assert ",".join(rows[0]) == "policy,turn,action,raw_tokens,active_tokens,cached_tokens,demo,tokenizer,tokens_kind"
    assert rows[1] == ["base", "0", "pass", "9", "9", "0", "false", "characters/4", "estimated"]
    assert rows[4] == ["pamer", "1", "compress", "12", "7", "1", "true", "characters/4", "estimated"]
    assert states_csv(made("pamer", demo=True)).splitlines() == [
        "turn,states,demo,tokenizer,tokens_kind",
        '0,"",true,characters/4,estimated',
        "1,S,true,characters/4,estimated",
    ]
