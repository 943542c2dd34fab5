"""Episodes end with a reason whatever an agent does, are what a replay of their trace gives, and lose exactly what a policy hides."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pamer_lab.arena.agents import AgentError
from pamer_lab.arena.episode import (
    ANSWERED,
    BROKE_PROTOCOL,
    NO_ANSWER,
    NO_SUCH_TOOLS,
    OUT_OF_TURNS,
    REPEATED,
    Episode,
    play,
)
from pamer_lab.arena.opening import open_episode
from pamer_lab.arena.plan import Plan
from pamer_lab.arena.reader import Reader
from pamer_lab.arena.results import left_at, pairs, paths, table
from pamer_lab.arena.running import play_arena
from pamer_lab.arena.store import EPISODES, ArenaStore
from pamer_lab.arena.world import Level, Task
from pamer_lab.errors import Cancelled, InputError
from pamer_lab.factory import Factory
from pamer_lab.models.profiles import load_profile
from pamer_lab.policies.registry import parse_policy
from pamer_lab.prices import DEFAULT, find_prices
from pamer_lab.report.bundle import tables
from pamer_lab.report.config import ArenaSection, ReportConfig
from pamer_lab.report.making import make
from pamer_lab.runs.store import RunStore
from pamer_lab.trajectory.values import Message, Tool, ToolCall
from pamer_lab.workspace import Workspace
from pamer_lab.workspace.store import TOTALS

TASK = Task(1, 0, Level(2, 1, 1))


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Factory:
    return Factory(load_profile("embedded"), Workspace(tmp_path_factory.mktemp("arena")), "cpu")


def played(factory: Factory, policy: str, agent: object = None) -> Episode:
    return play(TASK, agent or Reader(), parse_policy(policy), factory, [find_prices()])  # type: ignore[arg-type]


def test_the_base_agent_succeeds_between_the_two_bounds(factory: Factory) -> None:
    base, oracle, none = (played(factory, policy) for policy in ("base", "oracle", "none"))
    assert base.reward == oracle.reward == 1.0 and none.reward == 0.0
    assert oracle.turns == base.turns == TASK.least_turns and none.turns == TASK.budget
    assert oracle.totals["main_input"] < base.totals["main_input"] and not base.lost and none.repeats > 0
    assert none.missing == tuple(wanted.text for wanted in TASK.questions)


def test_a_small_window_makes_the_agent_look_again_for_a_fact_it_had(factory: Factory) -> None:
    base, window = played(factory, "base"), played(factory, "sliding-window:2")
    row = paths([base, window])[1]
    assert window.repeats > 0 and row["left_base_at"] == left_at(window, base) is not None
    assert row["lost_fact"] in row["lost"] and row["lost"]
    assert left_at(base, base) is None


@dataclass
class Scripted:
    """Does what it is told to, whatever it sees."""

    said: Sequence[Message | Exception]
    simulated: bool = True
    name: str = "scripted"
    seen: list[Sequence[Message]] = field(default_factory=list)

    def act(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        self.seen.append(messages)
        said = self.said[min(len(self.seen) - 1, len(self.said) - 1)]
        if isinstance(said, Exception):
            raise said
        return said


def call(name: str, arguments: str = '{"query": "x"}', key: str = "c") -> Message:
    return Message("assistant", "", (ToolCall(key, name, arguments),))


REFUSED = "the server failed: connection refused"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([call("search")], REPEATED),
        ([call("fly", f'{{"n": {n}}}') for n in range(9)], NO_SUCH_TOOLS),
        ([Message("assistant", "  ")], NO_ANSWER),
        ([Message("user", "hello")], BROKE_PROTOCOL),
        ([call("search", key="")], BROKE_PROTOCOL),
        ([Message("assistant", "", (ToolCall("a", "search"), ToolCall("a", "search")))], BROKE_PROTOCOL),
        ([call("search"), AgentError(REFUSED)], REFUSED),
        ([AgentError(REFUSED)], REFUSED),
        ([Message("assistant", "ANSWER: x; y")], ANSWERED),
    ],
)
def test_whatever_an_agent_does_its_task_ends_with_a_reason(factory: Factory, said: list[Message], reason: str) -> None:
    episode = played(factory, "base", Scripted(said))
    assert episode.ended.startswith(reason) and episode.reward == 0.0 and len(episode.missing) == 2


def test_an_agent_that_goes_on_for_ever_is_told_before_its_last_turn(factory: Factory) -> None:
    agent = Scripted([call("search", f'{{"query": "{n}"}}', f"c{n}") for n in range(99)])
    episode = played(factory, "base", agent)
    assert episode.turns == TASK.budget and episode.ended == OUT_OF_TURNS
    assert agent.seen[-1][-1].role == "user" and agent.seen[-2][-1].role == "tool"


PLAN = Plan(tasks=2, level="2-1-1", policies=("sliding-window:2", "sam:900:page=300"), processes=2)


def test_an_arena_is_played_stopped_continued_and_opened_in_replay(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    store = ArenaStore(workspace)
    count = iter(range(99))
    with pytest.raises(Cancelled):
        play_arena(PLAN, workspace, cancelled=lambda: next(count) >= 60, agent=Reader())
    info = store.info(store.ids()[0])
    before = store.episodes(info.arena_id)
    assert 0 < len(before) < 10
    with (store.folder / info.arena_id / EPISODES).open("ab") as stream:
        stream.write(b'{"task": 0, "pol')  # as a crash leaves it
    shown: list[object] = []
    assert play_arena(PLAN, workspace, shown.append) == info
    episodes = store.episodes(info.arena_id)
    assert len(episodes) == 10 and len(shown) == 10 - len(before) + 1
    assert {episode.policy for episode in episodes} == {"base", "sliding-window:2", "sam:900:page=300", "oracle", "none"}
    for episode in episodes[:5]:
        opened = open_episode(workspace, info.arena_id, episode.task, episode.policy)
        run = RunStore(workspace).run(opened["run_id"])
        assert [run.totals[name] for name in TOTALS] == [episode.totals[name] for name in TOTALS]
        assert workspace.trace(opened["trace_id"]).trace.reward == episode.reward
    sam = next(episode for episode in episodes if episode.policy.startswith("sam"))
    assert any(made.name == "query_memory" for said in sam.answers for made in said.tool_calls) == bool(sam.memory_answers)
    with pytest.raises(InputError):
        open_episode(workspace, info.arena_id, 77, "base")


def test_an_arena_is_free_again_as_soon_as_its_block_ends(tmp_path: Path) -> None:
    store = ArenaStore(Workspace(tmp_path))
    (store.folder / "w-1").mkdir(parents=True)
    lock = store.lock("w-1")
    with lock, pytest.raises(InputError, match="another process"):
        store.lock("w-1")
    with store.lock("w-1"):
        pass


def test_a_policy_that_replays_recorded_calls_cannot_play() -> None:
    with pytest.raises(InputError):
        Plan(policies=("acm",)).named()
    assert Plan(policies=("sliding-window",)).named() == ("base", "sliding-window:5", "oracle", "none")


def test_tables_and_pairs_have_the_contracts_keys(factory: Factory) -> None:
    episodes = [played(factory, policy) for policy in ("base", "sliding-window:2", "oracle")]
    rows = {row["policy"]: row for row in table(episodes, DEFAULT, "reader")}
    wanted = {"policy", "agent", "n", "success_rate", "ci", "turns", "repeats", "main_input", "uncached", "cost", "peak_active"}
    assert all(wanted <= row.keys() for row in rows.values()) and rows["base"]["vs_base_pct"] == 0
    found = pairs(episodes, DEFAULT)
    assert {row["policy"] for row in found} == {"sliding-window:2", "oracle"} and all(row["n"] == 1 and row["p"] == 1.0 for row in found)


def test_a_share_file_has_an_arenas_results(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    info = play_arena(Plan(tasks=1, level="1-0-1", policies=("sliding-window:2",)), workspace, agent=Reader())
    report = make(ReportConfig(sections=(ArenaSection(arena_id=info.arena_id, against="sliding-window:2"),)), workspace)
    (section,) = report.document.sections
    assert section["simulated"] and section["bounds"].keys() == {"oracle", "none"} and len(section["tasks"]) == 4
    assert {row["against"] for row in section["pairs"]} == {"sliding-window:2"}
    assert tables(report.document).keys() == {"arena_results", "arena_pairs", "arena_tasks"} and b"verifyArena" in report.html
    for section_ in (ArenaSection(arena_id="w-none"), ArenaSection(arena_id=info.arena_id, against="acon")):
        with pytest.raises(InputError):
            make(ReportConfig(sections=(section_,)), workspace)
