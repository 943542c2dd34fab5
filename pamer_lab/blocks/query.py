"""What an agent was asked, and the recall query made of it: the same words for the controller, the policies and the studies."""

from collections.abc import Iterable, Sequence

from pamer_lab.blocks.render import render_message
from pamer_lab.trajectory.values import Message

QUERY_CHARACTERS = 30_000
"""Characters of a recall query: the last ones of task and recent blocks."""


def task_text(prefix: Sequence[Message]) -> str:
    """Text of the prefix's user messages, or of the complete prefix where there are none."""
    asked = [message.content for message in prefix if message.role == "user"] or [message.content for message in prefix]
    return "\n".join(asked)


def query_text(task: str, recent: Iterable[Message], characters: int = QUERY_CHARACTERS) -> str:
    """Task and recent blocks as text, its last `characters`."""
    return "\n".join([task, *(render_message(message) for message in recent)])[-characters:]
