"""`pamer-lab run`: the agent's exit code, variables for the child alone, and what the run took."""

import json
import os
import sys
from collections.abc import Iterator

import pytest

from pamer_lab.cli import main
from pamer_lab.live.fake_upstream import FakeUpstream, serving
from pamer_lab.workspace import Workspace

AGENT = """
import os, sys
import openai
history = [{"role": "user", "content": "Count the rooms."}]
for turn in range(6):
    answer = openai.OpenAI(api_key="sk-planted-0123456789").chat.completions.create(model="fake", messages=history)
    history.append({"role": "assistant", "content": answer.choices[0].message.content})
    history.append({"role": "user", "content": f"room {turn}: " + "exhibit " * 60})
print(answer.choices[0].message.content)
print(os.environ["OPENAI_BASE_URL"], os.environ["ANTHROPIC_BASE_URL"])
sys.exit(7)
"""


@pytest.fixture
def upstream() -> Iterator[tuple[FakeUpstream, str]]:
    fake = FakeUpstream()
    with serving(fake) as url:
        yield fake, url


def test_an_agent_runs_behind_the_proxy_and_its_exit_code_is_passed_on(
    workspace: Workspace, upstream: tuple[FakeUpstream, str], capfd: pytest.CaptureFixture[str]
) -> None:
    fake, url = upstream
    before = dict(os.environ)
    words = ["--upstream", url, "--policy", "sliding-window:2", "--gate", "none", "--", sys.executable, "-c", AGENT]
    assert main(["run", "--json", *words]) == 7
    assert dict(os.environ) == before
    out, err = capfd.readouterr()
    result = json.loads(out)
    assert "Answer " in err and url not in err, "what the agent prints goes to stderr, and it knows the proxy's address only"
    totals = result["totals"]
    assert result["exit_code"] == 7 and totals["turns"] == len(fake.ledger) == 6
    assert totals["edits"] > 0 and totals["fallbacks"] == 0
    assert totals["tokens"]["model"] < totals["tokens"]["client"]
    assert totals["cost"]["vs_base"] == totals["cost"]["simulated"] / totals["cost"]["passed_through"]
    assert totals["cost"]["recorded"] > 0
    (session,) = result["sessions"]
    assert session["client"] == "openai-sdk" and workspace.trace(session["trace_id"]).trace.turns == 6
    assert result["page"].endswith(f"/live?session={session['session']}")


def test_the_summary_is_printed_after_what_the_agent_printed(
    workspace: Workspace, upstream: tuple[FakeUpstream, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--upstream", upstream[1], "--", sys.executable, "-c", "print('the agent')"]) == 0
    out = capfd.readouterr().out
    assert out.index("the agent") < out.index("0 turns")
    assert all(word in out for word in ("tokens", "cost", "edits", "fallbacks", "page"))


def test_a_command_that_is_not_there_is_said(workspace: Workspace, upstream: tuple[FakeUpstream, str]) -> None:
    assert main(["run", "--upstream", upstream[1], "--", "no-such-agent-here"]) == 127
    assert main(["run", "--upstream", upstream[1]]) == 2
