"""WorkBuddyBench's proxy log: one record per request to the model, with its trial, its route and the response.

A trial's longest conversation becomes a trace with the task's reward, which any record of the trial may hold; the agent's other requests
(titles, side agents) become further traces without a reward. The judge's requests are counted, not read. Invariant: one reward per trial.
"""

from collections.abc import Iterator
from typing import Any

from pamer_lab.errors import NotThisFormat
from pamer_lab.trajectory.document import Document
from pamer_lab.trajectory.draft import Draft
from pamer_lab.trajectory.formats.call_log import read_call_row
from pamer_lab.trajectory.shared import get
from pamer_lab.trajectory.shared.growing import Conversation, ModelCall, conversations
from pamer_lab.trajectory.shared.rewards import reward_of
from pamer_lab.trajectory.shared.rows import Row, attempt, head, rows

NAME = "workbuddy-bench-proxy"
DOMAINS = {"code": "Code", "office": "Office", "sec": "Security", "security": "Security", "web": "Web"}
"""How a task's name or its subset begins -> its domain in the benchmark."""


def detect(document: Document) -> bool:
    if document.kind not in ("json", "jsonl"):
        return False
    first = [row for row in head(document, 40) if get.text(row, "trial_id")]
    owned = any({"route", "instance_id", "reward", "task_id"} & row.keys() for row in first)
    return owned and any(read_call_row(row, "") for row in first)


def read(document: Document) -> Iterator[Draft]:
    trials: dict[str, list[Row]] = {}
    for where, row in rows(document):
        trials.setdefault(get.text(row, "trial_id", "trial_name", "task_id"), []).append((where, row))
    judged = 0
    found = False
    for trial, records in trials.items():
        agents, judges = _by_route(records)
        judged += len(judges)
        for draft in _read_trial(trial, agents):
            if judges:
                draft.unread("request of the judge", judges[0][0], len(judges))
                judges = []
            found = True
            yield draft
    if not found:
        raise NotThisFormat("contains no agent request with its answer" if not judged else "contains only the judge's requests")


def _by_route(records: list[Row]) -> tuple[list[Row], list[Row]]:
    """(the agent's records, the judge's): the agent's route begins with the run's own id, the judge's is a bare model."""
    agents = [(where, row) for where, row in records if not _is_judges(row)]
    return (agents, [record for record in records if _is_judges(record[1])]) if agents else (records, [])


def _is_judges(row: dict[str, Any]) -> bool:
    route, run = get.text(row, "route"), get.text(row, "instance_id")
    return bool(route and run and not route.startswith(run))


def _read_trial(trial: str, records: list[Row]) -> Iterator[Draft]:
    """The trial's main conversation first, with its reward; then the other requests."""
    numbered = [get.count(row, "seq") for _, row in records]
    if None not in numbered:  # records are written when their answers end, which is not always the order of the requests
        records = [record for _, record in sorted(zip(numbered, records, strict=True), key=lambda pair: pair[0] or 0)]
    calls: list[ModelCall] = []
    stray: list[str] = []
    for where, row in records:
        made = read_call_row(row, where)
        for call in made or ():
            call.session = call.group = trial
        calls += made or ()
        if not made and reward_of(row) is None:
            stray.append(where)
    runs = conversations(calls)
    main = max(runs, key=len, default=None)
    for conversation in sorted(runs, key=lambda one: one is not main):
        draft = attempt(NAME, conversation[0].where, _read_one, conversation, trial, records, conversation is main)
        if conversation is main and stray:
            draft.unread("record without a model answer", stray[0], len(stray))
        yield draft


def _read_one(calls: list[ModelCall], trial: str, records: list[Row], main: bool) -> Draft:
    draft = Draft(NAME, where=trial, orphans="as_user")
    facts = next((row for _, row in records if get.text(row, "task_id", "task_name")), {})
    task = get.text(facts, "task_id", "task_name").removeprefix("workbuddy/") or trial.rpartition("__")[0] or trial
    draft.task_id, draft.question_id = trial, task
    named = next((name for _, row in records if (name := get.text(row, "domain", "subset"))), "")
    beginning = (named or task).lower().removeprefix("wb-bench-").replace("_", "-").partition("-")[0]
    draft.meta = {
        "domain": DOMAINS.get(beginning, named),
        "run": get.text(records[0][1], "instance_id"),
        "part": None if main else "beside",
    }
    if main:
        rewards = [reward for _, row in records if (reward := reward_of(row)) is not None]
        draft.reward = rewards[-1] if rewards else None
    return Conversation(draft, calls).write()
