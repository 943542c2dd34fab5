"""Decides what is sent for a session's request (the policy's view, the previous view or the client's own body), and why.

Knows neither HTTP nor files. Invariant: whatever fails, the client's own body can be sent, and the decision gives the reason.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace

from msgspec import structs

from pamer_lab.decisions import Decision
from pamer_lab.errors import LabError
from pamer_lab.live.call import Call, Deciding, Outgoing, stamped
from pamer_lab.live.policy import Workshop
from pamer_lab.live.record import Sent
from pamer_lab.live.threads import Thread
from pamer_lab.live.view import MarkError, body_of, extended, keeps_everything
from pamer_lab.live.wire import Wire
from pamer_lab.policies.interface import History
from pamer_lab.runs.acting import made_turn
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message


class Decider:
    """Decides on the requests of all sessions of one proxy. Requests of one session are decided one at a time."""

    def __init__(self, workshop: Workshop, *, window: int, clock: Callable[[], float]) -> None:
        """`window`: the model's context window in tokens; 0 means that no limit is known."""
        self._workshop, self._window, self._clock = workshop, window, clock

    def decide(self, call: Call, thread: Thread, wire: Wire) -> Deciding:
        """What to send, and why."""
        record = thread.record
        thread.used = call.at
        if why := self._hands_off(thread, wire):
            decided = Deciding((), "original", wire.body, why)
        elif self._workshop.is_base(record.policy):
            decided = self._observed(call, thread, wire)
        else:
            try:
                decided = self._acted(call, thread, wire)
            except Exception as error:  # policies fail in as many ways as models and disks
                decided = self._fallback(thread, wire, error)
        if not call.settle():
            decided = self._came_late(call, thread, wire, decided)
        if wire.kept_elsewhere and not wire.earlier:
            return decided  # the provider keeps the history, and it is not known here
        return self._after_the_last(thread, wire, decided, as_it_came=bool(why))

    def passed(self, thread: Thread, wire: Wire, decided: Deciding) -> Deciding:
        """The decision if the client's own body goes out instead; the record must not contain this request yet."""
        return self._after_the_last(thread, wire, replace(decided, shown=None, edit=False), as_it_came=True)

    def _after_the_last(self, thread: Thread, wire: Wire, decided: Deciding, *, as_it_came: bool) -> Deciding:
        """The decision compared with what was last sent, even if another policy, or none, decided that."""
        record, last = thread.record, thread.record.last_seen
        if decided.shown is not None:
            return decided
        first = decided.turns[0].t if decided.turns else len(record.turns)
        known = (*record.turns[max(0, first - 1) : first], *decided.turns)
        turn = known[-1] if known else None
        as_it_came = as_it_came or turn is None
        before = known[-2:-1] if decided.turns else known
        if not as_it_came and (last is None or any(_same(last, one) for one in before)):
            return decided
        try:
            history = self._workshop.history(record, self._history(thread, wire, self._clock())).at_now()
            everything = (*history.head(), *history.raw([(0, history.t)]))
            stored = turn.stored if turn else ()
            decision = Decision("pass", decided.reason, everything, stored=stored) if as_it_came or turn is None else turn
            shown = made_turn(decision, history, last.items if last else (), self._workshop.tokens)
        except Exception:  # counts for the record; the request does not depend on them
            return decided
        edit = last is not None and shown.t >= last.t and shown.cached_tokens < last.active_tokens
        return replace(decided, shown=shown, edit=decided.edit or edit)

    def _hands_off(self, thread: Thread, wire: Wire) -> str:
        """Why a request goes out unchanged, whatever the policy says; empty if the policy decides."""
        record = thread.record
        if wire.kept_elsewhere:
            return "the provider keeps this conversation's history; nothing of it can be edited here"
        if record.paused:
            return "paused"
        return record.stopped

    def _observed(self, call: Call, thread: Thread, wire: Wire) -> Deciding:
        turns = self._act(call, thread, wire)[0]
        return Deciding(turns, "original", wire.body, turns[-1].reason if turns else "the same request again")

    def _act(self, call: Call, thread: Thread, wire: Wire) -> tuple[tuple[Turn, ...], Turn, History]:
        """New decisions, the decision on this request, and the history that the policy saw."""
        began = time.perf_counter()
        record = thread.record
        if thread.acting is None:
            thread.acting = self._workshop.acting(record)
        acting, history = thread.acting, self._history(thread, wire, call.at)
        # A client that adds messages before it has an answer changes the input of the last decision, so that decision is made again.
        known = len(record.turns) - acting.follow(history)
        act = acting.decide(self._idle(thread, call))
        call.ms["decide"] = since(began)
        return tuple(acting.turns[known:]), act.turn, act.history

    def _acted(self, call: Call, thread: Thread, wire: Wire) -> Deciding:
        turns, turn, history = self._act(call, thread, wire)
        assert thread.acting is not None  # made by _act
        began = time.perf_counter()
        self._workshop.store(thread.acting, turns)
        call.ms["store"] = since(began)
        if turn.action == "fallback":
            return Deciding(turns, *self._best(thread, wire, history), turn.reason, turn.error or turn.reason, edit=thread.view is not None)
        body = body_of(wire, turn.items, history)
        before = thread.view
        edit = _breaks(thread, turn, history)
        view = None if keeps_everything(turn.items, history.t) else (history.t, turn.items)
        reason = turn.reason if turns else f"the same request again: {turn.reason}"
        return Deciding(turns, "original" if body is wire.body else "edited", body, reason, edit=edit and before != view, view=view)

    def _history(self, thread: Thread, wire: Wire, at: float) -> tuple[Message, ...]:
        """The client's messages; known ones keep the time at which they first arrived."""
        known = thread.record.units[: thread.common(wire.digests)]
        fresh = [tuple(stamped(message, at) for message in unit.messages) for unit in wire.units[len(known) :]]
        return (*thread.record.opened.preamble, *(message for unit in (*known, *fresh) for message in unit))

    def _idle(self, thread: Thread, call: Call) -> float | None:
        """Seconds since the session's previous request; None if there is none, infinite if the client came with a rewritten history."""
        if thread.record.opened.rewritten and not thread.record.asked:
            return math.inf
        return max(0.0, call.at - thread.record.asked[-1].at) if thread.record.asked else None

    def _fallback(self, thread: Thread, wire: Wire, error: Exception) -> Deciding:
        """Send the request unchanged because something failed; the policy restarts from the record at the next request."""
        reason = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        thread.acting = None
        if isinstance(error, MarkError):
            reason = f"the edit waits: {reason}"
        turns: tuple[Turn, ...] = ()
        try:
            turns, history = self._raw_turns(thread, wire, reason)
            sent, body = self._best(thread, wire, history)
        except Exception:  # tokens stay uncounted; sending the bytes matters more
            sent, body = "original", wire.body
        return Deciding(
            turns, sent, body, "sent unchanged", reason, edit=thread.view is not None, view=thread.view if sent == "kept" else None
        )

    def _best(self, thread: Thread, wire: Wire, history: History) -> tuple[Sent, bytes]:
        """The client's own body, or the last good view if that body is too large for the model's window."""
        if self._window and history.raw_tokens > self._window and thread.view is not None:
            since, items = thread.view
            return "kept", body_of(wire, extended(items, since, history), history)
        return "original", wire.body

    def _raw_turns(self, thread: Thread, wire: Wire, reason: str) -> tuple[tuple[Turn, ...], History]:
        """`fallback` turns for all decision points that have no turn yet."""
        growing = self._workshop.history(thread.record, self._history(thread, wire, self._clock()))
        known, tokens = thread.record.turns, self._workshop.tokens
        previous = known[-1].items if known else ()
        found: list[Turn] = []
        for t in range(len(known), growing.t + 1):
            history = growing.at(t)
            items = (*history.head(), *history.raw([(0, t)]))
            stored = known[-1].stored if known else ()
            decision = Decision("fallback", "the request was sent unchanged", items, stored=stored, error=reason)
            found.append(made_turn(decision, history, previous, tokens))
            previous = items
        return tuple(found), growing.at_now()

    def _came_late(self, call: Call, thread: Thread, wire: Wire, decided: Deciding) -> Deciding:
        """Record what the event loop sent without waiting; the late decision serves the next turn."""
        out, known = call.instead.result(), thread.record.turns
        if not decided.turns and not out.edited and decided.sent == "original":
            return decided
        history = self._workshop.history(thread.record, self._history(thread, wire, self._clock())).at_now()
        items = out.items or (*history.head(), *history.raw([(0, history.t)]))
        *before, last = decided.turns or known[-1:]
        previous = before[-1] if before else known[last.t - 1] if last.t else None
        reason = f"{last.reason}; the decision came after the deadline and serves the next turn"
        action = "pass" if last.action != "fallback" or out.edited else last.action
        late = made_turn(
            structs.replace(last, action=action, reason=reason, items=items, cached_tokens=0),
            history,
            previous.items if previous else (),
            self._workshop.tokens,
            seconds=last.seconds,
        )
        view = (history.t, items) if out.edited else None
        sent: Sent = "kept" if out.edited else "original"
        edit = previous is not None and late.cached_tokens < previous.active_tokens
        if not decided.turns:
            return Deciding((), sent, out.body, reason, edit=edit, view=view, shown=late)
        if thread.acting is not None:
            thread.acting.turns[-1] = late
        return Deciding((*before, late), sent, out.body, reason, edit=edit, view=view)

    def late(self, call: Call) -> Outgoing:
        """What goes out when the decision is late: the last view plus newer messages, or the client's own body."""
        out = self._without_decision(call)
        call.instead.set_result(out)
        return out

    def _without_decision(self, call: Call) -> Outgoing:
        thread, wire = call.thread, call.wire
        view = thread.view if thread else None
        if thread is None or wire is None or view is None or thread.record.paused or thread.record.stopped:
            return Outgoing(call.body)
        try:
            if thread.common(wire.digests) < len(thread.record.digests):
                return Outgoing(call.body)  # another request came first, and the view is of its history
            history = self._workshop.history(thread.record, self._history(thread, wire, call.at)).at_now()
            since, items = view
            kept = extended(items, since, history)
            return Outgoing(body_of(wire, kept, history), edited=True, items=kept)
        except Exception:  # the client's own body can always be sent
            return Outgoing(call.body)


def _same(one: Turn, other: Turn | None) -> bool:
    """Whether two turns are at the same decision point and show the same items."""
    return other is not None and (one.t, one.items) == (other.t, other.items)


def _breaks(thread: Thread, turn: Turn, history: History) -> bool:
    """Whether the request no longer begins with the previous one, which breaks the prompt cache's prefix."""
    turns = thread.record.turns
    last = [asked for asked in thread.record.asked if not asked.again][-1:]
    if not last or not turns or last[0].t >= len(turns):
        return False
    before = turns[last[0].t]
    return turn.t == before.t + 1 and turn.cached_tokens < before.active_tokens


def since(began: float) -> float:
    """Milliseconds since `began`."""
    return (time.perf_counter() - began) * 1000
