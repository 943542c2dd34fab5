"""`reader`: a simulated agent whose next action is a pure function of the messages it receives. Its rules:

1. The task's numbered questions are what it wants. A fact is known if a message that it sees states it.
2. If it sees every fact, or no turns are left, it answers with what it sees and `unknown` for the rest.
3. Otherwise it works on the first question that is not answered in view and that its own newest message does not list as answered.
   If only listed ones are left, a fact it had is gone from view: it says so and looks for that fact again, first in memory if
   `query_memory` is offered, then with its tools.
4. To find a fact, it reads the document if a list gives its location. If a list says what the file is kept under, it searches with
   that value, and finds that value first if it is not in view. Otherwise it searches by name.
5. It writes down the wanted facts of the last result (unless `notes=off`) and which questions it has answered so far.
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
    """Whether it restates the facts it finds; otherwise only tool results contain them."""
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
        """Notes of what the last result says about the questions, or about the keys their files are kept under."""
        last = messages[-1] if messages and messages[-1].role == "tool" else None
        if last is None or not self.notes:
            return []
        needed = dict.fromkeys(key for entry in wanted for key in sight.way(entry))
        found = {key: value for key in needed if (value := stated(key, last.content)) is not None}
        return [NOTED.format(d=key.text, v=value) for key, value in found.items()]

    def _memory(self, messages: Sequence[Message], goal: Wanted) -> tuple[str, dict[str, str]] | None:
        """A memory query, unless the newest message has just asked the same."""
        asked = {"query": goal.text}
        newest = next((message for message in reversed(messages) if message.role == "assistant"), None)
        again = any(call.name == MEMORY and orjson.loads(call.arguments) == asked for call in (newest.tool_calls if newest else ()))
        return None if again else (MEMORY, asked)


def _had(messages: Sequence[Message]) -> set[int]:
    """The questions that its own newest message lists as answered."""
    for message in reversed(messages):
        if message.role == "assistant" and (match := _HAVE.search(message.content)):
            return {int(number) for number in match[1].split(",")}
    return set()


def _next(goal: Wanted, sight: Sight, *, shell: bool) -> tuple[str, dict[str, str]]:
    """The next call on the way to a fact."""
    for entry in sight.way(goal):
        if ref := sight.place(entry):
            return ("read_file", {"path": ref}) if shell else ("get_document", {"document_id": ref})
        key = sight.kept_under(entry)
        value = sight.value(key) if key else None
        if key is None or value is not None:
            query = " ".join(filter(None, (entry.entity, entry.words, value)))
            return ("run_command", {"command": f"kb find '{query}'"}) if shell else ("search", {"query": query})
    raise AssertionError("the last file of a way is kept under nothing")
