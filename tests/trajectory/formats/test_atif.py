"""ATIF trajectories in their file forms."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from pamer_lab.trajectory import read_bytes, read_traces
from tests.trajectory.formats.told import counts, numbers, only, raw_values, read_lines, read_value, strings, told


def steps() -> list[dict[str, Any]]:
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"cmd": "ls"}}
    metrics = {"prompt_tokens": 50, "completion_tokens": 5, "cached_tokens": 20, "cost_usd": 0.01}
    return [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "list"}]},
        {
            "step_id": 3,
            "source": "agent",
            "message": "Listing.",
            "reasoning_content": "hm",
            "tool_calls": [call, {**call, "tool_call_id": "c2"}],
            "observation": {"results": [{"source_call_id": "c2", "content": "b"}, {"content": "a"}]},
            "metrics": metrics,
        },
        {"step_id": 4, "source": "system", "message": "check", "observation": {"results": [{"content": {"passed": False}}]}},
        {"step_id": 5, "source": "agent", "message": "type it", "observation": {"results": [{"content": "typed"}]}, "extra": {"k": 1}},
    ]


def trajectory(**more: Any) -> dict[str, Any]:
    agent = {"name": "harness", "version": "1", "model_name": "m", "tool_definitions": [{"type": "function", "function": {"name": "bash"}}]}
    totals = {"total_prompt_tokens": 70, "total_completion_tokens": 9, "total_cost_usd": 0.02, "total_steps": 5}
    return {"schema_version": "ATIF-v1.5", "session_id": "s", "agent": agent, "steps": steps(), "final_metrics": totals} | more


def as_lines() -> list[Any]:
    whole = trajectory()
    return [{**whole, "__header__": True, "steps": None, "final_metrics": None}, *whole["steps"], {"final_metrics": whole["final_metrics"]}]


FORMS = {
    "object": lambda: read_value(trajectory()),
    "array": lambda: read_value([trajectory()]),
    "one per line": lambda: read_lines([trajectory(), trajectory()])[:1],
    "header and step lines": lambda: read_lines(as_lines()),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_trajectory_reads_the_same_in_every_form(form: str) -> None:
    trace = only(FORMS[form]())
    roles = ["system", "user", "assistant", "tool", "tool", "system", "user", "assistant", "user"]
    assert [message.role for message in trace.messages] == roles
    assert counts(trace) == (2, 2, 3)  # "typed" answers no recorded call
    turn = trace.messages[2]
    assert (turn.thinking, turn.usage and (turn.usage.input_tokens, turn.usage.cached_tokens, turn.usage.cost_usd)) == (
        "hm",
        (50, 20, 0.01),
    )
    assert [(message.tool_call_id, message.content) for message in trace.messages[3:5]] == [("c2", "b"), ("c1", "a")]
    assert trace.messages[6].content == '{"passed":false}'
    assert trace.messages[8].content == "typed"
    assert (trace.usage and trace.usage.cost_usd, trace.tools[0].name, trace.question_id) == (0.02, "bash", "s")
    assert trace.meta["step_extra"] == {"5": {"k": 1}}


def test_a_continuation_shares_the_question_and_the_first_part_says_where_it_goes_on() -> None:
    first = only(read_value(trajectory(continued_trajectory_ref="trajectory.cont-1.json")))
    event = first.events[-1]
    assert (event.kind, event.before_message, event.data) == ("compaction", 9, {"continued_in": "trajectory.cont-1.json"})
    copied = [{**step, "is_copied_context": True} for step in steps()[:2]] + steps()[2:]
    second = only(read_value(trajectory(session_id="s-cont-1", steps=copied)))
    assert (first.question_id, second.question_id) == ("s", "s")
    assert (second.warnings[0].where, numbers(second.warnings[0].text)) == ("steps", [2])


def test_side_agents_tasks_and_missing_pieces_are_read() -> None:
    with_ref = steps()
    with_ref[2]["observation"]["results"][0]["subagent_trajectory_ref"] = [{"session_id": "x"}]
    trace = only(read_value(trajectory(steps=with_ref, extra={"task": "t-9"}, final_metrics=None, agent=None)))
    assert (trace.task_id, trace.question_id, trace.usage) == ("t-9", "t-9", None)
    assert trace.events[0].kind == "subagent"
    bare = [{"source": "user", "message": "hi"}, {"source": "agent", "message": None, "tool_calls": None, "observation": None}]
    assert counts(only(read_value(trajectory(steps=bare)))) == (1, 0, 0)


@pytest.mark.parametrize("broken", [{"steps": [7]}, {"steps": [{"source": "ghost", "message": "x"}]}])
def test_a_broken_step_is_refused_with_its_place(broken: dict[str, Any]) -> None:
    reading = read_bytes(orjson.dumps(trajectory(**broken)), "x.json")
    assert [rejected.where for rejected in reading.rejected] == ["steps[0]"]


@pytest.mark.parametrize(
    "name", ["openhands_hello-world.trajectory.json", "sample-trajectories.json", "session-2025-12-05T07-45-57-649Z-x8251x.atif.json"]
)
def test_real_trajectories_keep_every_step_and_text(real_traces: Path, name: str) -> None:
    path = real_traces / "atif" / name
    root = raw_values(path)[0]
    traces = read_traces(path)
    for value, trace in zip(root if isinstance(root, list) else [root], traces, strict=True):
        agent = [step for step in value["steps"] if step["source"] == "agent"]
        calls = sum(len(step.get("tool_calls") or []) for step in agent)
        results = sum(len(step["observation"]["results"]) for step in agent if step.get("observation"))
        assert counts(trace) == (len(agent), calls, results)
        texts = [step["message"] for step in value["steps"]]
        texts += [text for step in agent for text in strings([call["arguments"] for call in step.get("tool_calls") or []])]
        for step in value["steps"]:
            for result in (step.get("observation") or {}).get("results", []):
                texts += [result["content"]] if isinstance(result["content"], str) else []
        assert told([trace]).misses(texts) == []


def test_a_side_agents_event_has_all_that_it_and_its_own_side_agents_said_and_did() -> None:
    nested = {"steps": [{"source": "agent", "message": "deepest"}, "not a step"]}
    trace = only(read_value(trajectory(subagent_trajectories=[{"steps": steps(), "subagent_trajectories": [nested]}, 7])))
    first, second = [event for event in trace.events if event.kind == "subagent"]
    call = 'bash {"cmd":"ls"}'
    said = ["Be brief.", "list", "hm", "Listing.", call, call, "b", "a", "check", '{"passed":false}', "type it", "typed", "deepest"]
    assert first.text.replace(": ", ":").split("\n\n") == said and second.text == ""
