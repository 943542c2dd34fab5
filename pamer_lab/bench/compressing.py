"""Several processes compress several sessions in one store at once: is anything lost or doubled?

Each process works through its own session and tells what it was told; afterwards the store must hold exactly that, sound, in
one line per session, with every covered block byte for byte as the history has it.
"""

import multiprocessing
import tempfile
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from queue import Empty
from typing import Any

from pamer_lab.bench.crash import chat, controller
from pamer_lab.blocks import EstimatedCounter, MessageTokens
from pamer_lab.controller.request import Chat, History
from pamer_lab.errors import LabError
from pamer_lab.memory import MemoryStore
from pamer_lab.memory.check import check
from pamer_lab.memory.records import unpack
from pamer_lab.storage import Database

START_SECONDS = 300.0
"""How long the processes wait for each other before they begin together."""
END_SECONDS = 600.0
LOOK_SECONDS = 2.0
PROCESSES = multiprocessing.get_context("spawn")
"""Nothing is forked: LanceDB keeps a thread that a fork would leave behind, and these processes begin while others are at work."""


def messages_of(session: str, turns: int) -> list[Chat]:
    """Each session's own words, so that no block is shared."""
    return [{**message, "content": f"{session}: {message['content']}"} for message in chat(turns)]


def work(folder: str, session: str, turns: int, barrier: Any, results: Any) -> None:
    """One process: its session turn by turn, from the same moment as all others."""
    pamer = controller(folder)
    messages = messages_of(session, turns)
    barrier.wait(START_SECONDS)
    told: list[str] = []
    fallbacks: list[str] = []
    for turn in range(2, turns):
        _, decision = pamer.transform(session, messages[: 1 + 2 * turn])
        told += decision.memory_ids if decision.action == "compress" else ()
        fallbacks += [decision.error] if decision.action == "fallback" else []
    results.put((session, told, fallbacks))


def compress_at_once(processes: int = 8, turns: int = 40) -> dict[str, Any]:
    """Memories made, lost and doubled; blocks that are not as the history has them; what `memory check` finds."""
    with tempfile.TemporaryDirectory() as folder:
        barrier, results = PROCESSES.Barrier(processes), PROCESSES.Queue()
        names = [f"session '{number}'" for number in range(processes)]
        started = [PROCESSES.Process(target=work, args=(folder, name, turns, barrier, results)) for name in names]
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
    """What every process returns; one that ends without a result is an error, not a long wait."""
    answers: list[tuple[str, list[str], list[str]]] = []
    waited = 0.0
    while len(answers) < len(started):
        try:
            answers.append(results.get(timeout=LOOK_SECONDS))
        except Empty:
            waited += LOOK_SECONDS
            failed = [process.exitcode for process in started if process.exitcode]
            if failed or waited > END_SECONDS:
                for process in started:
                    process.terminate()
                raise LabError(
                    f"{len(started) - len(answers)} of {len(started)} processes returned nothing (exit codes {failed})"
                ) from None
    return answers


def _compare(folder: str, session: str, told: list[str], turns: int) -> tuple[int, int, int]:
    """(lost, doubled, changed) of one session: what its process reported compared with what is stored."""
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
