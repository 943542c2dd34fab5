"""What a reader sees while a long run goes on: the policy's model server answers only when the test lets it, so nothing depends on time."""

from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from pamer_lab.figures.text import counted
from pamer_lab.models.profiles import PROFILES, ChatSettings, remember_profile
from pamer_lab.runs.engine import replay
from pamer_lab.runs.store import RunStore
from pamer_lab.workspace import Workspace
from tests.browser.driver import PATIENCE_MS, Visitor
from tests.controller.test_llm_parts import served
from tests.runs.making import long_trace

pytestmark = pytest.mark.browser

POLICY = "periodic-summary:3"
POINTS = f"""document.querySelector('.st-key-context .js-plotly-plot')?.calcdata
    ?.filter(line => line[0].trace.name === '{POLICY}' && line[0].trace.mode.includes('lines')).map(line => line.length)[0] ?? 0"""


def shows(page: Page, turns: int) -> None:
    """Chart, headline and turn limit are about so many turns."""
    page.wait_for_function(f"() => ({POINTS}) === {turns}")
    expect(page.get_by_text(f"{POLICY}: {counted(turns, 'turn')} ·").first).to_be_visible()
    expect(page.locator(".st-key-turn input")).to_have_attribute("max", str(turns - 1))


def test_chart_headline_and_turn_limit_follow_a_run(stranger: Callable[..., Visitor], link: str, folder: Path) -> None:
    trace, workspace = long_trace(60, trace_id="t-slow"), Workspace(folder)
    replay(trace, "base", workspace)
    asked: Queue[str] = Queue()
    answers: Queue[str] = Queue()

    def answer(body: Any) -> str:
        asked.put("asked")
        return answers.get()

    with served(answer) as port:
        chat = ChatSettings(kind="openai", model="slow", base_url=f"http://127.0.0.1:{port}/v1", timeout_seconds=900, attempts=1)
        remember_profile(PROFILES["embedded"].model_copy(update={"name": "slow", "chat": chat}), workspace.path)
        visitor = stranger()
        visitor.page.goto(link)
        visitor.settle()
        page = visitor.open(f"/replay?trace=t-slow&policies=base&policies={POLICY}&profile=slow")
        page.locator(".st-key-trust-profile button").click()
        visitor.settle()
        page.locator(".st-key-run button").click()
        asked.get(timeout=PATIENCE_MS / 1000)
        page.get_by_role("radio", name=POLICY).first.click()
        store = RunStore(workspace)
        (run,) = [head.run_id for head in store.heads(trace_id="t-slow") if head.policy == POLICY]
        seen = [store.stored_count(run)]
        while len(seen) < 3:  # turns are stored in groups, so an answer or two may pass before there is more to show
            shows(page, seen[-1])
            expect(page.locator(".st-key-following")).to_contain_text(f"{POLICY}: turn {seen[-1] - 1} of 60")
            while (stored := store.stored_count(run)) == seen[-1]:
                answers.put("Documents were found.")
                asked.get(timeout=PATIENCE_MS / 1000)
            seen.append(stored)
        assert 0 < seen[0] < seen[1] < seen[2] < 60
        page.locator(".st-key-following button").first.click()
        answers.put("Documents were found.")
        page.locator(".st-key-run button").wait_for()
        shows(page, store.stored_count(run))
