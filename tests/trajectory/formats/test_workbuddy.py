"""WorkBuddyBench's proxy log, and the folders of its trials: traces with the reward of each task."""

import json
from pathlib import Path
from typing import Any

from pamer_lab.blocks import violations
from pamer_lab.trajectory import Trace, read_traces
from pamer_lab.trajectory.reading import read_all
from tests.trajectory.formats.told import counts, read_lines

LOG = Path(__file__).resolve().parents[2] / "fixtures" / "traces" / "workbuddy-proxy.jsonl"


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LOG.read_text().splitlines()]


def by_question(traces: list[Trace]) -> list[tuple[str, float | None, tuple[int, int, int]]]:
    return [(trace.question_id, trace.reward, counts(trace)) for trace in traces]


def test_each_trial_is_a_trace_with_its_reward_and_what_was_asked_beside_has_none() -> None:
    traces = read_traces(LOG)
    assert {trace.format for trace in traces} == {"workbuddy-bench-proxy"}
    expected = [("code-count-rakes", 0.75, (3, 2, 1)), ("code-count-rakes", None, (1, 0, 0)), ("office-list", 0.0, (1, 0, 0))]
    assert by_question(traces) == expected
    assert [trace.meta["domain"] for trace in traces] == ["Code", "Code", "Office"]
    assert not any(violations(trace.messages) for trace in traces)


def test_requests_are_put_in_their_order_with_usage_time_and_the_agents_own_compaction() -> None:
    main = read_traces(LOG)[0]
    turns = [message for message in main.messages if message.role == "assistant"]
    assert [turn.usage.input_tokens for turn in turns if turn.usage] == [10, 30, 40]
    assert main.usage is not None and main.usage.input_tokens == 80
    assert all(turn.at is not None for turn in turns) and main.tools[0].name == "look"
    event = main.events[0]
    said = main.messages[event.summary or 0].content
    assert (event.kind, event.replaced, said) == ("compaction", ((1, 5),), "so far: two rakes seen")


def test_the_judges_requests_are_counted_and_a_log_of_them_alone_is_not_this_format() -> None:
    assert read_traces(LOG)[0].meta["other_lines"] == {"request of the judge": 1}
    judge = [row for row in records() if row.get("route") == "judge-model"]
    assert [trace.reward for trace in read_lines(judge)] == [None]


def test_a_folder_of_trials_gives_the_proxys_log_the_verifiers_reward_and_no_rejections(tmp_path: Path) -> None:
    for name, reward in (("code-count-rakes__ab12", "reward.json"), ("code-count-rakes__ef56", "reward.txt")):
        trial = tmp_path / "job" / name
        (trial / "agent").mkdir(parents=True)
        (trial / "verifier").mkdir()
        rows = [row | {"trial_id": name} for row in records() if row["trial_id"].startswith("code") and "request" in row]
        (trial / "agent" / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (trial / "agent" / "trajectory.json").write_text(json.dumps({"schema_version": "ATIF-v1.7", "steps": []}))
        (trial / "verifier" / reward).write_text("0.5" if reward.endswith("txt") else json.dumps({"reward": 0.25, "tests": 4}))
        (trial / "result.json").write_text(json.dumps({"verifier_result": {"rewards": {"reward": 1.0}}}))
        (trial / "config.json").write_text("{}")
    reading = read_all([tmp_path])
    assert not reading.rejected
    assert [trace.reward for trace in reading.traces] == [0.25, None, 0.5, None]
    one = tmp_path / "job" / "code-count-rakes__ab12" / "agent" / "requests.jsonl"
    assert read_traces(one)[0].reward == 0.25


def test_a_log_without_the_benchmarks_names_keeps_its_reward_too() -> None:
    rows = [{key: value for key, value in row.items() if key in ("request", "response")} | {"reward": 1} for row in records()[:2]]
    trace = read_lines(rows)[0]
    assert (trace.format, trace.reward) == ("model-call-log", 1.0)
