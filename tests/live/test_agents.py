"""Real agents behind `pamer-lab run` with an editing policy: mini-swe-agent, and opencode where Node is installed."""

from pathlib import Path
from typing import Any

import pytest

from pamer_lab.live.fake_upstream import FakeUpstream, serving
from pamer_lab.models import embedded
from pamer_lab.workspace import Workspace
from tests.live import agents
from tests.own_model import served

DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
STEPS = 6
SHORT = r"""
agent: {system_template: "You use a shell. Reply with one word: ls, pwd or date.", instance_template: "{{task}}", mode: yolo}
model:
  observation_template: "The shell printed:\n{{output.output}}\nReply with one word: ls, pwd or date."
  action_regex: '\A(?:.*?\b(ls|pwd|date)\b|)'
  model_kwargs: {max_tokens: 8, temperature: 0.0}
"""
"""Short enough for a small model, whose harmless commands are run; without one, nothing is run."""


def mini(*more: str) -> list[str]:
    """mini-swe-agent with a task, to its end without questions."""
    return [agents.mini(), "-t", "Count.", "-y", "--exit-immediately", "-l", "0", "--model-class", "litellm_textbased", *more]


def test_mini_swe_agent_works_to_its_end_behind_an_editing_policy(workspace: Workspace, tmp_path: Path) -> None:
    turns = iter(range(100))

    def reply(request: dict[str, Any], digest: str) -> str:
        turn = next(turns)
        return f"THOUGHT: step {turn}\n\n```mswea_bash_command\n{f'seq {turn} 300' if turn < 5 else f'echo {DONE}'}\n```"

    fake = FakeUpstream(reply=reply)
    agent = mini("-m", "openai/fake", "-c", "mini_textbased.yaml")
    with serving(fake) as url:
        found = agents.run_behind(workspace, url, agent, tmp_path, agents.QUIET)
    (session,) = found["sessions"]
    assert (found["exit_code"], session["turns"], session["fallbacks"]) == (0, 6, 0) and session["edits"] > 0
    assert session["tokens"]["billed"]["output"] == fake.totals.output


@pytest.mark.server
@pytest.mark.weights
def test_mini_swe_agent_takes_steps_with_a_real_model_behind_an_editing_policy(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(SHORT)
    limits = ["--agent-class", "default", "-c", "short.yaml", "-c", f"agent.step_limit={STEPS}"]
    agent = mini("-m", f"openai/{embedded.prepare()}", *limits)
    with served(embedded.prepare()) as url:
        found = agents.run_behind(workspace, url, agent, tmp_path, agents.QUIET)
    (session,) = found["sessions"]
    assert (found["exit_code"], session["turns"], session["fallbacks"], session["errors"]) == (0, STEPS, 0, 0)
    assert session["edits"] > 0 and session["tokens"]["billed"]["output"] > 0


def test_opencode_gets_its_first_answer_behind_an_editing_policy(workspace: Workspace, tmp_path: Path) -> None:
    program = agents.opencode()
    fake = FakeUpstream(reply=lambda request, digest: "All rooms are counted.")
    with serving(fake) as url:
        found = agents.run_behind(workspace, url, [program, "run", "-m", "openai/gpt-5", "Count."], tmp_path, {})
    answered = [session for session in found["sessions"] if session["client"] == "opencode"]
    assert found["exit_code"] == 0 and answered and all(session["turns"] and not session["fallbacks"] for session in answered)
    assert sum(session["tokens"]["billed"]["output"] for session in found["sessions"]) == fake.totals.output
