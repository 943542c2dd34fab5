"""`reader`: a simulated agent whose next action is a pure function of the messages it receives. Its rules, on one page:

1. The task's numbered questions are what it wants. A fact is known if a message that it sees states it.
2. If it sees every fact, or no turns are left, it answers with what it sees and `unknown` for the rest.
3. Otherwise it goes for the first question that it neither sees answered nor, by its own newest message, had answered. If only
   answered ones are left, a fact it had is gone: it says so and looks for that one again, first in memory where `query_memory` is
   offered, then with its tools.
4. To find a fact: read the document if a list names its place; if a list says what the file is kept under, search with that value,
   and find that value first if it does not see it; otherwise search by name.
5. It writes down the facts of the last result that it wants (`notes=off`: it does not), and which questions it has had answered.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from pamer_lab.corpus.language import NOTED, Sight, Wanted, questions, stated
from pamer_lab.trajectory.values import Message, Tool, ToolCall

LAST_TURN = "No turns are left. Answer now."
"""What the arena says before an agent's last turn."""
MEMORY = "query_memory"
_HAVE = re.compile(r"Have: ([\d, ]+)\.")


@dataclass(frozen=True)
class Reader:
    """A program, not a model: every number it gives is simulated."""

    notes: bool = True
    """Whether it restates the facts it finds; without, only tool results hold them."""
    simulated: bool = True

    @property
    def name(self) -> str:
        return "reader" if self.notes else "reader:notes=off"

    def act(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        """The next assistant message."""
        task = next((message.content for message in messages if message.role == "user" and questions(message.content)), "")
        wanted = questions(task)
        sight = Sight([message.content for message in messages if message.content and message.content != task])
        values = [sight.value(entry) for entry in wanted]
        ended = any(message.content == LAST_TURN for message in messages[-2:])
        if ended or (wanted and None not in values):
            return Message("assistant", f"ANSWER: {'; '.join(value or 'unknown' for value in values)}")
        had = _had(messages) | {number for number, value in enumerate(values, start=1) if value is not None}
        open_ = [number for number, value in enumerate(values, start=1) if value is None]
        number = next((entry for entry in open_ if entry not in had), open_[0] if open_ else 0)
        if not number:
            return Message("assistant", "I see no question to answer.")
        goal, gone = wanted[number - 1], number in had
        said = [*self._noted(messages, wanted, sight), f"Have: {', '.join(map(str, sorted(had)))}." if had else "Nothing is answered yet."]
        said.append(f"Question {number} was answered before and is gone from view; looking again." if gone else f"Next: {goal.text}.")
        call = self._memory(messages, goal) if gone and any(tool.name == MEMORY for tool in tools) else None
        name, arguments = call or _next(goal, sight, shell=any(tool.name == "run_command" for tool in tools))
        turn = sum(message.role == "assistant" for message in messages)
        made = ToolCall(f"call_{turn}_{len(messages)}", name, orjson.dumps(arguments).decode())
        return Message("assistant", " ".join(said), (made,))

    def _noted(self, messages: Sequence[Message], wanted: Sequence[Wanted], sight: Sight) -> list[str]:
        """What the last result says of the questions, or of what their files are kept under."""
        last = messages[-1] if messages and messages[-1].role == "tool" else None
        if last is None or not self.notes:
            return []
        needed = dict.fromkeys(key for entry in wanted for key in sight.way(entry))
        found = {key: value for key in needed if (value := stated(key, last.content)) is not None}
        return [NOTED.format(d=key.text, v=value) for key, value in found.items()]

    def _memory(self, messages: Sequence[Message], goal: Wanted) -> tuple[str, dict[str, str]] | None:
        """A question to memory, unless the last one brought nothing."""
        asked = {"query": goal.text}
        newest = next((message for message in reversed(messages) if message.role == "assistant"), None)
        again = any(call.name == MEMORY and orjson.loads(call.arguments) == asked for call in (newest.tool_calls if newest else ()))
        return None if again else (MEMORY, asked)


def _had(messages: Sequence[Message]) -> set[int]:
    """The questions that its own newest message calls answered."""
    for message in reversed(messages):
        if message.role == "assistant" and (match := _HAVE.search(message.content)):
            return {int(number) for number in match[1].split(",")}
    return set()


def _next(goal: Wanted, sight: Sight, *, shell: bool) -> tuple[str, dict[str, str]]:
    """The call that leads on to a fact."""
    for entry in sight.way(goal):
        if ref := sight.place(entry):
            return ("read_file", {"path": ref}) if shell else ("get_document", {"document_id": ref})
        key = sight.kept_under(entry)
        value = sight.value(key) if key else None
        if key is None or value is not None:
            query = " ".join(filter(None, (entry.entity, entry.words, value)))
            return ("run_command", {"command": f"kb find '{query}'"}) if shell else ("search", {"query": query})
    raise AssertionError("the last file of a way is kept under nothing")
