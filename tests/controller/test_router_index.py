from datetime import UTC, datetime

import numpy as np

from pamer_lab.blocks import EstimatedCounter
from pamer_lab.controller.router import RouterQuery
from pamer_lab.controller.router_embedded import OFTEN, EmbeddedRouter
from pamer_lab.controller.router_index import IndexSource, index_terms, summary_lines
from pamer_lab.memory import CoveredBlock, Memory, MemoryDraft, SourceBlock
from pamer_lab.memory.extractive import ExtractiveSummariser
from pamer_lab.memory.records import seal
from pamer_lab.memory.session import assemble
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.trajectory.values import Message, ToolCall


def block(query: str, result: str, said: str = "") -> tuple[Message, ...]:
    asked = ToolCall("c", "search", f'{{"q": "{query}"}}')
    return (Message("assistant", said, (asked,)), Message("tool", result, tool_call_id="c"))


def memory(*blocks: tuple[Message, ...]) -> Memory:
    """What a controller stores of these blocks; raw hashes that lead nowhere, since the index needs none."""
    summary = ExtractiveSummariser(EstimatedCounter()).summarise("task", [SourceBlock(step, entry) for step, entry in enumerate(blocks)])
    covered = tuple(CoveredBlock(step, f"{step}:0", f"none{step}", detail, 9) for step, detail in enumerate(summary.details))
    draft = MemoryDraft("s", summary.text, np.ones(2, dtype=np.float32), covered, 1, "t", "s", "e")
    return seal(draft, 0, datetime(2026, 1, 1, tzinfo=UTC))


def chosen(stored: Memory, *recent: tuple[Message, ...]) -> list[int]:
    query = RouterQuery("the task", recent, assemble("s", [stored]))
    answer = EmbeddedRouter(HashingEmbedder(64), IndexSource()).route(query).answer
    return list(answer["raw_steps_needed"])


def test_a_step_is_found_by_what_its_index_lines_say_without_its_raw_block() -> None:
    stored = memory(
        block("the Jarrow Viaduct engineer", "Wanda Hughes was the engineer of the Jarrow Viaduct."),
        block("the Wrexham Beacon keeper", "The Wrexham Beacon was kept by Clara Reuter.", "So it was Wanda Hughes."),
    )
    newest = block("the mill owner", "The mill was paid for by the engineer of the Jarrow Viaduct.")
    assert chosen(stored, block("a mill", "Nothing."), newest) == [0]
    assert chosen(stored, block("a mill", "Nothing."), block("the mill", "It was paid for by nobody.")) == []


def test_identifiers_are_found_in_any_language_and_a_text_without_any_chooses_nothing() -> None:
    stored = memory(
        block("src/core/zahlen.py", "Die Datei src/core/zahlen.py summiert alles."),
        block("src/core/wort.py", "文件 src/core/wort.py 负责拆分单词。"),
    )
    assert chosen(stored, block("x", "nichts"), block("log.txt", "错误出现在 src/core/wort.py 里。")) == [1]
    assert chosen(stored, block("x", "nichts"), block("y", "Der Fehler steht in src/core/zahlen.py weiter oben.")) == [0]
    assert chosen(stored, block("x", "没有"), block("y", "这里什么都没有。")) == []


def test_the_lines_of_a_summary_belong_to_their_steps_and_running_text_to_none() -> None:
    assert summary_lines("Step 3: one\n- two\nStep 7: three") == {3: ["one", "two"], 7: ["three"]}
    assert summary_lines("The agent read Step 3: a file.\n- a point") == {}


def test_a_detail_tells_what_was_asked_from_what_came_back() -> None:
    found = index_terms(
        'read({"path":"src/a.py"}) | says: Clara Reuter -> It is by Wanda Hughes | names: ORD-7', ["See ORD-9 and src/a.py"]
    )
    assert found.called == {"src/a.py"} and found.asked == {"src/a.py", "clara reuter"}
    assert {"wanda hughes", "ord-7", "ord-9"} <= found.answered and "src/a.py" not in found.answered


def test_a_models_sentence_counts_as_asked_and_answered() -> None:
    found = index_terms("The agent found that Wanda Hughes built ORD-7.", [])
    assert found.asked == found.answered == {"wanda hughes", "ord-7"}


def test_a_step_whose_answer_was_used_in_many_later_steps_comes_back_without_a_cue() -> None:
    profile = block("the account", "The account has ACC-771 and CARD-902.")
    uses = [block(f"pay {number} from ACC-771", "Done.") for number in range(OFTEN)]
    newest = block("the weather", "It rains.")
    assert chosen(memory(profile, *uses), block("a walk", "Nothing."), newest) == [0]
    assert chosen(memory(profile, *uses[1:]), block("a walk", "Nothing."), newest) == []
