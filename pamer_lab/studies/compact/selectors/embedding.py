"""Embedding Top-K (the paper's "Qwen"): cosine between the embedded query, task + Recent2, and each older block."""

from collections.abc import Sequence
from dataclasses import dataclass

from pamer_lab.blocks.render import query_text, render_message
from pamer_lab.studies.compact.groups import EMBEDDING, Group
from pamer_lab.studies.compact.points import DecisionPoint
from pamer_lab.studies.compact.selectors import ranked
from pamer_lab.studies.compact.values import Evidence, Need, Resources


@dataclass(frozen=True)
class ByEmbedding:
    """Ranks by meaning."""

    name: str = "embedding"
    label: str = "Embedding"
    group: Group = EMBEDDING
    needs: frozenset[Need] = frozenset({"embedder"})

    def rank(self, point: DecisionPoint, resources: Resources) -> list[Evidence]:
        old = point.window.old
        if not old:
            return []
        rows = resources.embeddings([_query(point), *(block_text(point, number) for number in old)])
        return ranked(old, [float(score) for score in rows[1:] @ rows[0]])


def texts_to_embed(points: Sequence[DecisionPoint]) -> list[str]:
    """Every query and older block that ranking at these points asks for, each once."""
    asked = [point for point in points if point.window.old]
    queries = [_query(point) for point in asked]
    return list(dict.fromkeys([*queries, *(block_text(point, number) for point in asked for number in point.window.old)]))


def _query(point: DecisionPoint) -> str:
    """The controller's recall query at this point."""
    return query_text(point.task, [message for number in point.window.recent for message in point.block(number)])


def block_text(point: DecisionPoint, number: int) -> str:
    """One block as text."""
    return "".join(render_message(message) for message in point.block(number))
