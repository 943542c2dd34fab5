"""A session log under construction: what its lines say, call and return, in order as steps.

For agents that write one line per event. Invariant: what the agent says and calls joins the open turn until a message, a result or
`close` ends it; the lines of a side agent become one `subagent` event at the place where it started.
"""

from typing import Any, Literal

from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.plain_values import json_text
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.parts import Content, content_of, output_content
from pamer_lab.trajectory.shared.steps import Mark, Result, Said, Step, Turn, add_steps, stamp_steps
from pamer_lab.trajectory.shared.vocabulary import output_of
from pamer_lab.trajectory.values import EventKind, ToolCall


class Log:
    """Collects the steps of one session; `finish` writes them into its draft."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.steps: list[Step] = []
        self.turn: Turn | None = None
        """The turn that the agent's next words or calls join."""
        self.last: Turn | None = None
        self.asked: set[str] = set()
        """Ids of all calls so far."""
        self._unstamped = 0
        """Number of the first step whose time is not known yet."""
        self._sides: dict[str, tuple[int, list[str], dict[str, Any]]] = {}

    def open(self, where: str) -> Turn:
        """The open turn, or a new one."""
        if self.turn is None:
            self.turn = self.last = Turn(where)
            self.steps.append(self.turn)
        return self.turn

    def close(self) -> None:
        """End the open turn; the agent's next words begin a new one."""
        self.turn = None

    def say(self, role: Literal["system", "user"], value: Any, where: str, *, name: str = "") -> None:
        """A message to the agent; results inside it come first, as in Anthropic's and Gemini's shapes."""
        content = content_of(self.draft, value, where)
        self.close()
        self.results(content, where)
        if content.texts or not content.results:
            self.steps.append(Said(role, content.text, content.images, name))

    def agent(self, value: Any, where: str, *, thinking: str = "") -> Turn:
        """More agent output: text, thinking and calls in any spelling of the vocabulary, and the results next to them."""
        content = content_of(self.draft, value, where)
        turn = self.open(where)
        turn.add(content)
        if thinking and thinking not in turn.thinking:
            turn.thinking.append(thinking)
        for call in content.calls:
            self.call(call, where)
        if content.results:
            self.results(content, where)
            self.close()
        return turn

    def call(self, call: ToolCall, where: str) -> Turn:
        """A call of the open turn."""
        turn = self.open(where)
        turn.calls.append(call)
        self.asked.add(call.id)
        return turn

    def results(self, content: Content, where: str) -> None:
        """The results that a message's content holds."""
        for call_id, result, failed in content.results:
            self.steps.append(Result(call_id, result.text, where, result.images, failed))

    def answer(self, call_id: str, output: Any, where: str, *, failed: bool = False, name: str = "", rest: Any = None) -> None:
        """A tool's result; where the source recorded no output, `rest` (what it did record) is kept as JSON text."""
        self.close()
        found, worse = output_of(output)
        content = output_content(self.draft, found, where)
        text = content.text
        if not text.strip() and rest not in (None, "") and (not isinstance(rest, dict) or any(rest.values())):
            text = json_text(rest)
        self.steps.append(Result(call_id, text, where, content.images, failed or worse, name))

    def mark(self, kind: EventKind, text: str = "", **facts: Any) -> None:
        """An event; it does not end the open turn."""
        self.steps.append(Mark(kind, text, facts))

    def side(self, key: str, *texts: str, **facts: Any) -> None:
        """More words of the side agent with this key; the facts of its first line are kept."""
        if key not in self._sides:
            self._sides[key] = (len(self.steps), [], facts)
            self.steps.append(Mark("subagent"))
        self._sides[key][1].extend(text for text in texts if text)

    def stamp(self, time: Any) -> None:
        """Note when the steps since the last stamp were recorded."""
        stamp_steps(self.steps, self._unstamped, get.as_time(time))
        self._unstamped = len(self.steps)

    def finish(self) -> Draft:
        """Write everything into the draft."""
        for place, texts, facts in self._sides.values():
            self.steps[place] = Mark("subagent", "\n\n".join(texts), facts)
        add_steps(self.draft, self.steps)
        return self.draft
