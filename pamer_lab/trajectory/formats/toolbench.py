"""ToolBench answer trees: the recorded message chains of a depth-first search.

The trace is the last chain, which is the final path; chains that are prefixes of it are earlier states of the same path.
Messages found only in abandoned chains are kept as notes. `win` is the reward.
"""

from collections.abc import Iterator

from pamer_lab.errors import FormatError
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.fields import read_tools
from pamer_lab.trajectory.shared.messages import add_messages
from pamer_lab.trajectory.shared.rows import one_value

NAME = "toolbench-dfs-tree"


def detect(document: Document) -> bool:
    root = one_value(document)
    return isinstance(root, dict) and isinstance(root.get("answer_generation"), dict) and "tree" in root


def read(document: Document) -> Iterator[Draft]:
    answer = document.root["answer_generation"]
    chains = [chain for chain in get.items(answer, "train_messages") if isinstance(chain, list) and chain]
    if not chains:
        raise FormatError("recorded no message chain: the search ended without an answer", where="answer_generation.train_messages")
    draft = Draft(NAME, orphans="as_user")
    final = chains[-1]
    add_messages(draft, final, place=f"train_messages[{len(chains) - 1}]")
    left = [(number, message) for number, chain in enumerate(chains[:-1]) for message in chain if message not in final]
    for number, message in left:
        draft.event("note", json_text(message), chain=number)
    if left:
        draft.warn("train_messages", f"{len(left)} messages of abandoned search chains are kept as notes")
    draft.tools = read_tools(answer.get("function"))
    draft.question_id = get.text(answer, "query")[:200]
    draft.reward = float(bool(document.root.get("win")))
    draft.meta = get.facts(answer, "query", "final_answer", "finish_type", "query_count", "valid_data")
    draft.meta["total_tokens"] = get.count(answer, "total_tokens")
    yield draft
