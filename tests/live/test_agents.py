"""Real agents behind `pamer-lab run` with an editing policy: mini-swe-agent, and opencode where Node is installed."""

from pathlib import Path
from typing import Any

from pamer_lab.live.fake_upstream import FakeUpstream, serving
from pamer_lab.workspace import Workspace
from tests.live import agents

DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def test_mini_swe_agent_works_to_its_end_behind_an_editing_policy(workspace: Workspace, tmp_path: Path) -> None:
    turns = iter(range(100))

    def reply(request: dict[str, Any], digest: str) -> str:
        turn = next(turns)
        return f"THOUGHT: step {turn}\n\n```mswea_bash_command\n{f'seq {turn} 300' if turn < 5 else f'echo {DONE}'}\n```"

    fake = FakeUpstream(reply=reply)
    agent = agents.counting("-m", "openai/fake", "-c", "mini_textbased.yaml")
    with serving(fake) as url:
        found = agents.run_behind(workspace, url, agent, tmp_path, agents.QUIET)
    (session,) = found["sessions"]
    assert (found["exit_code"], session["turns"], session["fallbacks"]) == (0, 6, 0) and session["edits"] > 0
    assert session["tokens"]["billed"]["output"] == fake.totals.output


def test_opencode_gets_its_first_answer_behind_an_editing_policy(workspace: Workspace, tmp_path: Path) -> None:
    program = agents.opencode()
    fake = FakeUpstream(reply=lambda request, digest: "All rooms are counted.")
    with serving(fake) as url:
        found = agents.run_behind(workspace, url, [program, "run", "-m", "openai/gpt-5", "Count."], tmp_path, {})
    answered = [session for session in found["sessions"] if session["client"] == "opencode"]
    assert found["exit_code"] == 0 and answered and all(session["turns"] and not session["fallbacks"] for session in answered)
    assert sum(session["tokens"]["billed"]["output"] for session in found["sessions"]) == fake.totals.output
