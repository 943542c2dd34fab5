"""What happens to a model call before it goes out and after its answer: read, find the session, decide, keep, record.

Everything here runs in worker threads, one session at a time; the event loop waits for it up to a deadline. Invariant: whatever fails, the
client's own body is what goes out, and the record says why; a memory that a view relies on is stored and read back before the view is sent.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from msgspec import structs

from pamer_lab.bounded import Bounded
from pamer_lab.decisions import Decision, Item
from pamer_lab.errors import InputError, LabError
from pamer_lab.live.logs import Logs
from pamer_lab.live.policy import Workshop
from pamer_lab.live.record import Answered, Asked, Changed, Opened, Sent, Side
from pamer_lab.live.threads import Thread, Threads
from pamer_lab.live.usage import Answer, decoded, read_answer
from pamer_lab.live.view import MarkError, body_of, extended, keeps_everything
from pamer_lab.live.whose import Who, secrets_of, who_sent
from pamer_lab.live.wire import Api, Known, UnreadableError, Wire, read_wire
from pamer_lab.policies.interface import History, Policy
from pamer_lab.runs.acting import made_turn
from pamer_lab.runs.values import Turn
from pamer_lab.trajectory.values import Message

UNITS_KEPT = 8_192
"""Messages that stay read in this process."""
REDACTED = "[redacted credential]"
OUTSIDE = "no-session"
"""The session for what belongs to no conversation: bodies that cannot be read, calls that ask no model."""


@dataclass
class Call:
    """One request of a client for an answer of the model."""

    api: Api
    path: str
    headers: Mapping[str, str]
    """Lower-case; used to tell whose it is, and never stored."""
    body: bytes
    at: float
    """When it came, in seconds since 1970."""
    upstream: str
    """Where it goes."""
    thread: Thread | None = None
    wire: Wire | None = None
    asked: Asked | None = None
    ms: dict[str, float] = field(default_factory=dict)
    refused: int = 0
    """Status with which the edited body was refused."""
    _late: bool = False
    _settled: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def settle(self, *, late: bool = False) -> bool:
        """Whether the asker was the first: the worker with its decision, or the loop that waits no longer."""
        with self._lock:
            first = not self._settled
            self._settled = True
            self._late = self._late or (late and first)
            return first

    @property
    def plain(self) -> bytes:
        """The body without its content encoding."""
        return decoded(self.body, self.headers.get("content-encoding", ""))


@dataclass(frozen=True)
class Outgoing:
    """What goes upstream."""

    body: bytes
    edited: bool = False
    """False: the client's own body, encoded as it came."""


@dataclass(frozen=True)
class Deciding:
    """How one request was decided, before it is recorded."""

    turns: tuple[Turn, ...]
    sent: Sent
    body: bytes
    reason: str
    fallback: str = ""
    edit: bool = False
    view: tuple[int, tuple[Item, ...]] | None = None


class Desk:
    """All calls of one proxy."""

    def __init__(self, logs: Logs, workshop: Workshop, *, window: int = 0, clock: Callable[[], float] = time.time) -> None:
        """`window`: tokens that the model takes; 0 means that no limit is known."""
        self.logs, self.workshop, self.window, self.clock = logs, workshop, window, clock
        self.threads = Threads(logs, clock)
        self._salt = logs.salt()
        self._known: Known = Bounded(UNITS_KEPT)
        self._switched = any(thread.record.by_hand and not workshop.is_base(thread.record.policy) for thread in self.threads.all())
        """Whether a session has a policy that someone chose for it."""

    def waits_for_nothing(self, call: Call) -> bool:
        """Whether a call can go out before it is read: nothing is edited in any session."""
        return self.workshop.is_base(self.workshop.policy.name) and not self._switched

    def pause(self, session: str, paused: bool) -> None:
        """Send a session's requests as they come, or let its policy go on."""
        thread = self._there(session)
        with thread.lock:
            thread.acting, thread.view = None, None
            self.threads.append(thread, Changed(self.clock(), paused=paused))

    def switch(self, session: str, text: str) -> None:
        """Give a session another policy, from its next request on."""
        policy = self.workshop.parse(text)
        self._change(self._there(session), policy, by_hand=True)

    def _change(self, thread: Thread, policy: Policy, *, by_hand: bool) -> None:
        with thread.lock:
            thread.acting, thread.view = None, None
            settings, heads = self.workshop.facts(policy)
            frame = Changed(self.clock(), policy.name, thread.record.paused, "", settings, heads, by_hand)
            self.threads.append(thread, frame)
            self._switched = self._switched or (by_hand and not self.workshop.is_base(policy.name))

    def _there(self, session: str) -> Thread:
        thread = self.threads.get(session)
        if thread is None:
            raise InputError(f"session {session!r} is not known here")
        return thread

    def take(self, call: Call) -> Outgoing:
        """The bytes to send for a call, recorded; never raises."""
        began = time.perf_counter()
        try:
            return self._take(call, began)
        except Exception as error:  # whatever fails, the client's own request goes out
            call.settle()
            self._failed(call, error, began)
            return Outgoing(call.body)

    def _take(self, call: Call, began: float) -> Outgoing:
        try:
            wire = self._redacted(read_wire(call.api, call.plain, self._known), call)
        except (UnreadableError, ValueError, OSError) as error:
            self._unread(call, str(error))
            return Outgoing(call.body)
        who = who_sent(call.headers, wire, call.upstream, call.api, self._salt)
        stateful = wire.fields.get("previous_response_id")
        thread = self.threads.by_response(who, stateful) if isinstance(stateful, str) else None
        kept = len(thread.record.digests) if thread else 0
        if thread is None:
            thread, kept = self.threads.find(who, wire, lambda name, parent: self._opened(name, parent, who, wire, call))
        call.ms["read"] = _since(began)
        with thread.lock:
            call.thread, call.wire = thread, wire
            if self.logs.size(thread.record.session) > thread.place and self.threads.refresh(thread):
                kept = min(kept, thread.common(wire.digests))
            if thread.record.policy != self.workshop.policy.name and not thread.record.by_hand:
                self._change(thread, self.workshop.policy, by_hand=False)
            decided = self._decide(call, thread, wire, kept, bool(stateful))
            return self._recorded(call, thread, wire, decided, kept, began, stateful=bool(stateful))

    def _decide(self, call: Call, thread: Thread, wire: Wire, kept: int, stateful: bool) -> Deciding:
        """What to send, and why."""
        record = thread.record
        thread.used = call.at
        if why := self._hands_off(thread, wire, stateful):
            decided = Deciding((), "original", wire.body, why)
        elif self.workshop.is_base(record.policy):
            decided = self._observed(call, thread, wire)
        else:
            try:
                decided = self._acted(call, thread, wire)
            except Exception as error:  # policies fail in as many ways as models and disks
                decided = self._fallback(thread, wire, error)
        if call.settle():
            return decided
        return self._came_late(thread, wire, decided)

    def _hands_off(self, thread: Thread, wire: Wire, stateful: bool) -> str:
        """Why a request goes out as it came, whatever the policy says; empty where the policy decides."""
        record = thread.record
        if stateful:
            return "the provider keeps this conversation's history; nothing of it can be edited here"
        if record.paused:
            return "paused"
        return record.stopped

    def _observed(self, call: Call, thread: Thread, wire: Wire) -> Deciding:
        turns = self._act(call, thread, wire)[0]
        return Deciding(turns, "original", wire.body, turns[-1].reason if turns else "the same request again")

    def _act(self, call: Call, thread: Thread, wire: Wire) -> tuple[tuple[Turn, ...], Turn, History]:
        """The decisions that are new, the one about this request, and what the policy saw."""
        began = time.perf_counter()
        record = thread.record
        if thread.acting is None:
            thread.acting = self.workshop.acting(record)
        acting, history = thread.acting, self._history(thread, wire, call.at)
        acting.follow(history)
        known = len(record.turns)
        act = acting.decide(self._idle(thread, call))
        call.ms["decide"] = _since(began)
        return tuple(acting.turns[known:]), act.turn, act.history

    def _acted(self, call: Call, thread: Thread, wire: Wire) -> Deciding:
        turns, turn, history = self._act(call, thread, wire)
        assert thread.acting is not None  # made by _act
        began = time.perf_counter()
        self.workshop.store(thread.acting, turns)
        call.ms["store"] = _since(began)
        if turn.action == "fallback":
            return Deciding(turns, *self._best(thread, wire, history), turn.reason, turn.error or turn.reason, edit=thread.view is not None)
        body = body_of(wire, turn.items, history)
        before = thread.view
        edit = _breaks(thread, turn, history)
        view = None if keeps_everything(turn.items, history.t) else (history.t, turn.items)
        reason = turn.reason if turns else f"the same request again: {turn.reason}"
        return Deciding(turns, "original" if body is wire.body else "edited", body, reason, edit=edit and before != view, view=view)

    def _history(self, thread: Thread, wire: Wire, at: float) -> tuple[Message, ...]:
        """The client's messages, the known ones with the times at which they first came."""
        known = thread.record.units[: thread.common(wire.digests)]
        fresh = [tuple(_stamped(message, at) for message in unit.messages) for unit in wire.units[len(known) :]]
        return (*thread.record.opened.preamble, *(message for unit in (*known, *fresh) for message in unit))

    def _idle(self, thread: Thread, call: Call) -> float | None:
        """Seconds since the session's request before."""
        return max(0.0, call.at - thread.record.asked[-1].at) if thread.record.asked else None

    def _fallback(self, thread: Thread, wire: Wire, error: Exception) -> Deciding:
        """The request as it came, because something failed; the policy is taken up again from the record."""
        reason = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        thread.acting = None
        if isinstance(error, MarkError):
            reason = f"the edit waits: {reason}"
        turns: tuple[Turn, ...] = ()
        try:
            turns, history = self._raw_turns(thread, wire, reason)
            sent, body = self._best(thread, wire, history)
        except Exception:  # not even counted; the bytes are what matters
            sent, body = "original", wire.body
        return Deciding(
            turns, sent, body, "sent as it came", reason, edit=thread.view is not None, view=thread.view if sent == "kept" else None
        )

    def _best(self, thread: Thread, wire: Wire, history: History) -> tuple[Sent, bytes]:
        """The client's own body, or the last good view where that is too large for the model's window."""
        if self.window and history.raw_tokens > self.window and thread.view is not None:
            since, items = thread.view
            return "kept", body_of(wire, extended(items, since, history), history)
        return "original", wire.body

    def _raw_turns(self, thread: Thread, wire: Wire, reason: str) -> tuple[tuple[Turn, ...], History]:
        """Turns that say that nothing was decided, for all that have none."""
        growing = self.workshop.history(thread.record, self._history(thread, wire, self.clock()))
        known, tokens = thread.record.turns, self.workshop.tokens
        previous = known[-1].items if known else ()
        found: list[Turn] = []
        for t in range(len(known), growing.t + 1):
            history = growing.at(t)
            items = (*history.head(), *history.raw([(0, t)]))
            stored = known[-1].stored if known else ()
            decision = Decision("fallback", "the request was sent as it came", items, stored=stored, error=reason)
            found.append(made_turn(decision, history, previous, tokens))
            previous = items
        return tuple(found), growing.at_now()

    def _came_late(self, thread: Thread, wire: Wire, decided: Deciding) -> Deciding:
        """The loop did not wait: what it sent is what counts, and the decision serves the next turn."""
        if not decided.turns:
            return decided
        history = self.workshop.history(thread.record, self._history(thread, wire, self.clock())).at_now()
        items, sent = _kept_items(thread, history)
        *before, last = decided.turns
        reason = f"{last.reason}; the decision came after the deadline and serves the next turn"
        action = "pass" if last.action != "fallback" or sent == "kept" else last.action
        late = made_turn(
            structs.replace(last, action=action, reason=reason, items=items, cached_tokens=0),
            history,
            before[-1].items if before else thread.record.turns[-1].items if thread.record.turns else (),
            self.workshop.tokens,
            seconds=last.seconds,
        )
        if thread.acting is not None:
            thread.acting.turns[-1] = late
        view = thread.view if sent == "kept" else None
        return Deciding((*before, late), sent, wire.body, reason, "", view=(history.t, items) if view else None)

    def late(self, call: Call) -> Outgoing:
        """What goes out when the decision does not come in time: the last view and what came since, or the client's own body."""
        thread, wire = call.thread, call.wire
        if thread is None or wire is None or thread.view is None or thread.record.paused or thread.record.stopped:
            return Outgoing(call.body)
        try:
            history = self.workshop.history(thread.record, self._history(thread, wire, call.at)).at_now()
            return Outgoing(body_of(wire, _kept_items(thread, history)[0], history), edited=True)
        except Exception:  # the client's own body always can be sent
            return Outgoing(call.body)

    def _recorded(self, call: Call, thread: Thread, wire: Wire, decided: Deciding, kept: int, began: float, *, stateful: bool) -> Outgoing:
        """Write the frame, then say what to send; without the frame nothing edited goes out."""
        record = thread.record
        fresh = wire.units if stateful else wire.units[kept:]
        again = not fresh and bool(record.asked)
        call.ms["total"] = _since(began)
        call.asked = Asked(
            time.time_ns(),
            call.at,
            sum(unit.opens for unit in wire.units) if not stateful else sum(unit[0].role == "assistant" for unit in record.units),
            kept,
            tuple(unit.digest for unit in fresh),
            tuple(tuple(_stamped(message, call.at) for message in unit.messages) for unit in fresh),
            decided.turns,
            decided.sent,
            decided.edit,
            decided.reason,
            decided.fallback,
            wire.model,
            len(call.body),
            len(decided.body),
            {name: round(value, 3) for name, value in call.ms.items()},
            again,
            call.path,
        )
        unwritten = self.threads.append(thread, call.asked)
        if unwritten and decided.sent != "original":
            thread.acting, thread.view = None, None
            call.asked = structs.replace(call.asked, sent="original", fallback=unwritten, sent_bytes=len(call.body))
            record.asked[-1] = thread.unwritten[-1] = call.asked
            return Outgoing(call.body)
        if not again or decided.turns:
            thread.view = decided.view
        self.threads.tidy()
        return Outgoing(call.body) if decided.sent == "original" else Outgoing(decided.body, edited=True)

    def answered(self, call: Call, status: int, headers: Mapping[str, str], body: bytes, ms: dict[str, float], error: str = "") -> None:
        """Record what came back; `body`: all bytes that the client got."""
        if call.thread is None or call.asked is None:
            return
        found = read_answer(call.api, body, dict(headers)) if body else Answer(error=error)
        message = found.message if status < 400 else None
        if message is not None:
            message = _stamped(self._cleaned(message, secrets_of(call.headers)), self.clock())
        frame = Answered(
            call.asked.n,
            self.clock(),
            status,
            message,
            found.usage if status < 400 else None,
            {name: round(value, 3) for name, value in ms.items()},
            error or (found.error if status < 400 else f"the server answered {status}"),
            call.refused,
            found.response_id,
        )
        self.threads.append(call.thread, frame)

    def refused(self, call: Call, status: int) -> None:
        """An edited body was answered with an error: the original goes out once, and editing stops for this session."""
        call.refused = status
        if call.thread is None or call.asked is None:
            return
        why = f"editing stopped: the server answered {status} to an edited request"
        with call.thread.lock:
            call.thread.acting, call.thread.view = None, None
            self.threads.append(call.thread, Changed(self.clock(), stopped=why))

    def side(self, path: str, status: int) -> None:
        """A call beside the conversations."""
        thread = self._catch_all()
        self.threads.append(thread, Side(self.clock(), path, status))

    def _unread(self, call: Call, reason: str) -> None:
        who = Who(who_sent(call.headers, None, call.upstream, call.api, self._salt).scope, "", "unread", "unknown")
        call.settle()
        thread = self._catch_all(call.api, who)
        call.thread = thread
        call.asked = Asked(
            time.time_ns(), call.at, 0, 0, reason="sent as it came", fallback=reason, client_bytes=len(call.body), path=call.path
        )
        self.threads.append(thread, call.asked)

    def _failed(self, call: Call, error: Exception, began: float) -> None:
        """Record a failure outside the policy, as far as that is possible."""
        try:
            reason = f"{type(error).__name__}: {error}"
            if call.thread is None:
                self._unread(call, reason)
            elif call.asked is None:
                call.asked = Asked(time.time_ns(), call.at, 0, len(call.thread.record.digests), reason="sent as it came", fallback=reason)
                self.threads.append(call.thread, call.asked)
        except Exception:  # the answer must not depend on the record
            return

    def _catch_all(self, api: Api = "chat", who: Who | None = None) -> Thread:
        """The session for what belongs to no conversation."""
        with self.threads.lock:
            thread = self.threads.get(OUTSIDE)
            if thread is None:
                wire = Wire(api, b"", (), (), (), ())
                found = who or Who("", "", "unread", "unknown")
                found = Who(found.scope, "unread", "unread", "unknown", OUTSIDE)
                thread = self.threads.create(found, wire, lambda name, parent: self._opened(name, parent, found, wire, None), "")
            return thread

    def _opened(self, name: str, parent: str, who: Who, wire: Wire, call: Call | None) -> Opened:
        how = who.how if who.how != "lineage" or parent else "first message"
        at = call.at if call else self.clock()
        policy = self.workshop.policy
        return Opened(
            name,
            who.scope,
            who.named,
            how,
            wire.api,
            who.client,
            call.upstream if call else "",
            self.workshop.profile,
            policy.name,
            self.workshop.tokens.counter.name,
            self.workshop.tokens.counter.kind,
            at,
            f"live-{sha256(f'{name} {at}'.encode()).hexdigest()[:14]}",
            wire.preamble,
            wire.tools,
            parent,
            *self.workshop.facts(policy),
        )

    def _redacted(self, wire: Wire, call: Call) -> Wire:
        """The wire with the request's own credentials taken out of its messages, where someone wrote them there; its bytes stay."""
        found = [secret for secret in secrets_of(call.headers) if secret.encode() in wire.body]
        if not found:
            return wire
        units = tuple(replace(unit, messages=tuple(self._cleaned(message, found) for message in unit.messages)) for unit in wire.units)
        return replace(wire, units=units, preamble=tuple(self._cleaned(message, found) for message in wire.preamble))

    def _cleaned(self, message: Message, secrets: list[str]) -> Message:
        def clean(text: str) -> str:
            for secret in secrets:
                text = text.replace(secret, REDACTED)
            return text

        calls = tuple(structs.replace(call, arguments=clean(call.arguments)) for call in message.tool_calls)
        return structs.replace(message, content=clean(message.content), thinking=clean(message.thinking), tool_calls=calls)


def _kept_items(thread: Thread, history: History) -> tuple[tuple[Item, ...], Sent]:
    """The last view and what came since; everything where there is none."""
    if thread.view is None:
        return (*history.head(), *history.raw([(0, history.t)])), "original"
    since, items = thread.view
    return extended(items, since, history), "kept"


def _breaks(thread: Thread, turn: Turn, history: History) -> bool:
    """Whether a request does not begin with the one before."""
    turns = thread.record.turns
    last = [asked for asked in thread.record.asked if not asked.again][-1:]
    if not last or not turns or last[0].t >= len(turns):
        return False
    before = turns[last[0].t]
    return turn.t > before.t and turn.cached_tokens < before.active_tokens if turn.t == before.t + 1 else False


def _stamped(message: Message, at: float) -> Message:
    return message if message.at is not None else structs.replace(message, at=at)


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
