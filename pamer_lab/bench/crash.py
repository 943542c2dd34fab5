"""`bench crash`: kills a compressing process with SIGKILL at random moments and checks for partial writes; many processes on one store.

After every kill the store is reopened: every memory must be complete, the check clean, no block of the history lost, and the next process
continues the session. A new store begins after every `ROUND` kills, so that the time per kill does not grow. `run` does 200 kills; the test
suite does a few. When several processes compress at once, the store must hold exactly the memories they report, intact, without forks
in a session, and with every covered block byte for byte as in the history.
"""

import multiprocessing
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from queue import Empty
from typing import Any

from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.controller import ControllerSettings, FixedProbe, PamerController
from pamer_lab.controller.request import Chat, History
from pamer_lab.errors import LabError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.check import check
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.records import unpack
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.storage import Database

HELP = "200 SIGKILLs at random moments of a compressing process; --count 1000 for more"
KILLS = 200
ROUND = 25
"""Kills per store: checking a store takes longer the more memories it has."""
LONGEST_LIFE = 0.25
"""Maximum seconds that a child works before it is killed; a compression takes a few hundredths of a second."""
SESSION = "crash 'test'"
TURNS = 1_000
"""Length of the session that the children of a round work through; together they never reach its end."""
START_SECONDS = 120.0
LOOK_SECONDS = 0.5
TRIES = 5
# LanceDB warns about forks because a fork in the middle of its work could hang; the fork server has not started any.
warnings.filterwarnings("ignore", message="lancedb fork support")
PROCESSES = multiprocessing.get_context("forkserver")
"""Children are forked from a server that has imported everything once and opened nothing."""
PROCESSES.set_forkserver_preload(["pamer_lab.bench.crash", "lancedb"])


def chat(turns: int) -> list[Chat]:
    """A deterministic history that the parent and every child can generate on their own."""
    messages: list[Chat] = [{"role": "user", "content": "work through the list"}]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": f'{{"item": {number}}}'}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"item_{number} holds {number * 7919} pieces. " * 12})
    return messages


def controller(folder: str) -> PamerController:
    counter = EstimatedCounter()
    settings = ControllerSettings(minimum_candidate_tokens=100)
    return PamerController(
        MemoryStore(Database(folder)),
        HashingEmbedder(32),
        ExtractiveSummariser(counter, max_tokens=80),
        FixedProbe(),
        MessageTokens(counter),
        settings,
    )


def child(folder: str, ready: Any) -> None:
    """Continue the session and compress until killed; signals ready after the first compression, so that kills hit writes."""
    pamer = controller(folder)
    messages = chat(TURNS)
    start = len(pamer.store.load(SESSION).covered)
    for turn in range(start + 2, TURNS):
        _, decision = pamer.transform(SESSION, messages[: 1 + 2 * turn])
        if ready is not None and decision.action == "compress":
            ready.send("ready")
            ready = None


def run(kills: int = KILLS, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    chance = random.Random(seed)  # noqa: S311
    began = time.perf_counter()
    rounds: list[Round] = []
    for first in range(0, kills, ROUND):
        rounds.append(kill_round(min(ROUND, kills - first), chance))
        spent = time.perf_counter() - began
        done = min(first + ROUND, kills)
        print(f"{done} of {kills} kills, {spent:.0f} s, about {spent / done * (kills - done):.0f} s left", file=sys.stderr)
    ratios = {"kills": kills, "partial_memories": sum(r.partial for r in rounds), "lost_blocks": sum(r.lost for r in rounds)}
    details = {
        "memories": sum(r.memories for r in rounds),
        "covered_blocks": sum(r.covered for r in rounds),
        "orphans_left": sum(r.orphans for r in rounds),
        "memories_that_vanished": sum(r.vanished for r in rounds),
        "goes_on": all(r.goes_on for r in rounds),
        "rounds": len(rounds),
        "seconds": time.perf_counter() - began,
    }
    return ratios, details


@dataclass
class Round:
    """The result of the kills on one store."""

    partial: int = 0
    lost: int = 0
    vanished: int = 0
    """Kills after which there were fewer memories than before."""
    memories: int = 0
    orphans: int = 0
    covered: int = 0
    goes_on: bool = False


def kill_round(kills: int, chance: random.Random) -> Round:
    """Kill this many children of one store, checking it after each, and then continue its session."""
    found = Round()
    with tempfile.TemporaryDirectory() as folder:
        messages = chat(TURNS)
        for _ in range(kills):
            _kill_one(folder, chance)
            findings = check(Database(folder))
            found.partial += not findings.clean
            found.lost += _lost(folder, messages)
            found.vanished += findings.memories < found.memories
            found.orphans, found.memories = len(findings.orphans), findings.memories
        found.covered = len(MemoryStore(Database(folder)).load(SESSION).covered)
        _, decision = controller(folder).transform(SESSION, messages[: 1 + 2 * (found.covered + 12)])
        found.goes_on = decision.action == "compress"
    return found


def _kill_one(folder: str, chance: random.Random) -> None:
    """Start a child and kill it after a random time; one that did not start proves nothing, so another one is tried."""
    if not any(_worked(folder, chance.uniform(0.0, LONGEST_LIFE)) for _ in range(TRIES)):
        raise LabError(f"{TRIES} processes in a row did not start; run: pamer-lab doctor")


def _worked(folder: str, seconds: float) -> bool:
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=child, args=(folder, theirs))
    process.start()
    try:
        until = time.monotonic() + START_SECONDS
        while not ours.poll(LOOK_SECONDS):
            if process.exitcode is not None or time.monotonic() > until:
                return False
        time.sleep(seconds)
        return True
    finally:
        process.kill()
        process.join(START_SECONDS)
        ours.close()
        theirs.close()


def _lost(folder: str, messages: list[Chat]) -> int:
    """Number of covered blocks whose archived form differs from the history; covered means recoverable byte for byte."""
    store = MemoryStore(Database(folder))
    memory = store.load(SESSION)
    covered = [block for entry in memory.memories for block in entry.blocks]
    archive = store.raw_blocks([block.raw_hash for block in covered])
    request = History(MessageTokens(EstimatedCounter())).read(
        messages[: 1 + 2 * (max((block.step for block in covered), default=0) + 1)], None
    )
    return sum(
        request.block_ids[block.step] != block.block_id or unpack(archive[block.raw_hash]) != request.chat_of_block(block.step)
        for block in covered
    )


AT_ONCE_START_SECONDS = 300.0
"""How long the processes wait for each other before they start together."""
END_SECONDS = 600.0
AT_ONCE_LOOK_SECONDS = 2.0
AT_ONCE = multiprocessing.get_context("spawn")
"""Spawned, not forked: a fork would lose LanceDB's thread, and these processes start while others are working."""


def messages_of(session: str, turns: int) -> list[Chat]:
    """A history in the session's own words, so that sessions share no block."""
    return [{**message, "content": f"{session}: {message['content']}"} for message in chat(turns)]


def work(folder: str, session: str, turns: int, barrier: Any, results: Any) -> None:
    """One process: works through its session turn by turn, starting at the same moment as all others."""
    pamer = controller(folder)
    messages = messages_of(session, turns)
    barrier.wait(AT_ONCE_START_SECONDS)
    told: list[str] = []
    fallbacks: list[str] = []
    for turn in range(2, turns):
        _, decision = pamer.transform(session, messages[: 1 + 2 * turn])
        told += decision.memory_ids if decision.action == "compress" else ()
        fallbacks += [decision.error] if decision.action == "fallback" else []
    results.put((session, told, fallbacks))


def compress_at_once(processes: int = 8, turns: int = 40) -> dict[str, Any]:
    """Memories made, lost and duplicated; blocks that differ from the history; whether `memory check` is clean."""
    with tempfile.TemporaryDirectory() as folder:
        barrier, results = AT_ONCE.Barrier(processes), AT_ONCE.Queue()
        names = [f"session '{number}'" for number in range(processes)]
        started = [AT_ONCE.Process(target=work, args=(folder, name, turns, barrier, results)) for name in names]
        for process in started:
            process.start()
        answers = _gather(started, results)
        for process in started:
            process.join(60)
        found = [_compare(folder, session, told, turns) for session, told, _ in answers]
        findings = check(Database(folder))
    return {
        "processes": processes,
        "memories": sum(len(told) for _, told, _ in answers),
        "lost": sum(lost for lost, _, _ in found),
        "doubled": sum(doubled for _, doubled, _ in found),
        "changed_blocks": sum(changed for _, _, changed in found),
        "fallbacks": sum(len(fallbacks) for _, _, fallbacks in answers),
        "check_clean": findings.clean,
    }


def _gather(started: Sequence[BaseProcess], results: Any) -> list[tuple[str, list[str], list[str]]]:
    """The result of every process; one that fails without a result raises an error instead of causing a long wait."""
    answers: list[tuple[str, list[str], list[str]]] = []
    waited = 0.0
    while len(answers) < len(started):
        try:
            answers.append(results.get(timeout=AT_ONCE_LOOK_SECONDS))
        except Empty:
            waited += AT_ONCE_LOOK_SECONDS
            failed = [process.exitcode for process in started if process.exitcode]
            if failed or waited > END_SECONDS:
                for process in started:
                    process.terminate()
                raise LabError(
                    f"{len(started) - len(answers)} of {len(started)} processes returned nothing (exit codes {failed})"
                ) from None
    return answers


def _compare(folder: str, session: str, told: list[str], turns: int) -> tuple[int, int, int]:
    """(lost, duplicated, changed) of one session: what its process reported compared with what is stored."""
    store = MemoryStore(Database(folder))
    memory = store.load(session)
    stored = [entry.memory_id for entry in memory.memories]
    covered = [block for entry in memory.memories for block in entry.blocks]
    archive = store.raw_blocks([block.raw_hash for block in covered])
    request = History(MessageTokens(EstimatedCounter())).read(messages_of(session, turns), None)
    changed = sum(unpack(archive[block.raw_hash]) != request.chat_of_block(block.step) for block in covered)
    steps = [block.step for block in covered]
    doubled = len(stored) - len(set(stored)) + len(steps) - len(set(steps)) + len(memory.discarded)
    return len(set(told) ^ set(stored)), doubled, changed
