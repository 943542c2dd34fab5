"""What happens to a model call before it is sent and after its answer: read it, find its session, decide, record.

Everything here runs in worker threads, one session at a time; the event loop waits for it up to a deadline. Invariant: whatever fails, the
client's own body goes out, and the record says why; a memory that a view relies on is stored and read back before the view is sent.
"""

import time
from collections.abc import Callable, Mapping
from hashlib import sha256

from msgspec import structs

from pamer_lab.bounded import Bounded
from pamer_lab.errors import InputError
from pamer_lab.live.call import Call, Deciding, Outgoing, stamped
from pamer_lab.live.credentials import cleaned, redacted, secrets_of, without
from pamer_lab.live.deciding import Decider, since
from pamer_lab.live.logs import Logs
from pamer_lab.live.policy import Workshop
from pamer_lab.live.record import Answered, Asked, Changed, Opened, Record, Side
from pamer_lab.live.threads import Thread, Threads
from pamer_lab.live.usage import Answer, read_answer
from pamer_lab.live.whose import Who, who_sent
from pamer_lab.live.wire import Api, Known, UnreadableError, Wire, read_wire
from pamer_lab.policies.interface import Policy

UNITS_KEPT = 8_192
"""Parsed messages that are cached in this process."""
OUTSIDE = "no-session"
"""The session for what belongs to no conversation: unreadable bodies and calls that do not query a model."""
OUTSIDE_KEPT = 1_000
"""Calls of that session that stay in this process; its file has them all."""


class Desk:
    """Handles all model calls of one proxy."""

    def __init__(self, logs: Logs, workshop: Workshop, *, window: int = 0, clock: Callable[[], float] = time.time) -> None:
        """`window`: the model's context window in tokens; 0 means that no limit is known."""
        self.logs, self.workshop, self.clock = logs, workshop, clock
        self.decider = Decider(workshop, window=window, clock=clock)
        self.threads = Threads(logs, clock)
        self._salt = logs.salt()
        self._known: Known = Bounded(UNITS_KEPT)
        self._switched = any(thread.record.by_hand and not workshop.is_base(thread.record.policy) for thread in self.threads.all())
        """Whether the user gave any session a policy other than `base`."""

    @property
    def waits_for_nothing(self) -> bool:
        """Whether a call can go out before it is read, because no session is edited."""
        return self.workshop.is_base(self.workshop.policy.name) and not self._switched

    def pause(self, session: str, paused: bool) -> None:
        """Send a session's requests unchanged, or resume its policy."""
        thread = self._there(session)
        with thread.lock:
            thread.acting, thread.view = None, None
            self.threads.append(thread, Changed(self.clock(), paused=paused))

    def switch(self, session: str, text: str) -> None:
        """Change a session's policy, starting with its next request."""
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

    def read(self, call: Call) -> None:
        """Read a call and find its session; never raises."""
        began = time.perf_counter()
        try:
            wire = redacted(read_wire(call.api, call.plain, self._known), call.headers)
            who = who_sent(call.headers, wire, call.upstream, call.api, self._salt)
            call.wire = self.threads.completed(who, wire)
            call.thread = self._session(call, call.wire)
        except (UnreadableError, ValueError, OSError) as error:
            self._unread(call, str(error))
        except Exception as error:  # whatever fails, the client's own request goes out
            self._failed(call, error)
        call.ms["read"] = since(began)

    def _session(self, call: Call, wire: Wire) -> Thread:
        who = who_sent(call.headers, wire, call.upstream, call.api, self._salt)
        return self.threads.find(who, wire, lambda *about: self._opened(about, who, wire, call))

    def take(self, call: Call) -> Outgoing:
        """Decide on and record the bytes to send for a call; never raises. Reads the call first if needed."""
        if call.thread is None:
            self.read(call)
        try:
            return self._take(call) if call.wire is not None and call.thread is not None else Outgoing(call.body)
        except Exception as error:  # whatever fails, the client's own request goes out
            call.settle()
            self._failed(call, error)
            return Outgoing(call.body)

    def _take(self, call: Call) -> Outgoing:
        began = time.perf_counter()
        assert call.wire is not None and call.thread is not None  # the call was read
        wire, thread = call.wire, call.thread
        while True:
            with thread.order, thread.lock:
                if self.threads.continues(thread, wire):
                    if thread.record.policy != self.workshop.policy.name and not thread.record.by_hand:
                        self._change(thread, self.workshop.policy, by_hand=False)
                    decided = self.decider.decide(call, thread, wire)
                    return self._recorded(call, thread, wire, decided, began)
            # Another request has changed the session's history since this one was read.
            thread = call.thread = self._session(call, wire)

    def _recorded(self, call: Call, thread: Thread, wire: Wire, decided: Deciding, began: float) -> Outgoing:
        """Write the frame, then return what to send; an edited body goes out only if its frame was written."""
        record = thread.record
        kept = len(record.digests)
        fresh = wire.units[kept:]
        again = not fresh and bool(record.asked)
        call.ms["total"] = call.ms["read"] + since(began)
        call.asked = Asked(
            time.time_ns(),
            call.at,
            sum(unit.opens for unit in wire.units),
            kept,
            tuple(unit.digest for unit in fresh),
            tuple(tuple(stamped(message, call.at) for message in unit.messages) for unit in fresh),
            decided.turns,
            decided.sent,
            decided.edit,
            decided.reason,
            decided.fallback,
            without(wire.model, secrets_of(call.headers)),
            len(call.body),
            len(decided.body),
            {name: round(value, 3) for name, value in call.ms.items()},
            again,
            without(call.path, secrets_of(call.headers)),
            decided.shown,
        )
        unwritten = self.threads.append(thread, call.asked)
        if unwritten and decided.sent != "original":
            return self._without_frame(call, thread, wire, decided, unwritten)
        if not again or decided.turns:
            thread.view = decided.view
        self.threads.tidy()
        return Outgoing(call.body) if decided.sent == "original" else Outgoing(decided.body, edited=True)

    def _without_frame(self, call: Call, thread: Thread, wire: Wire, decided: Deciding, why: str) -> Outgoing:
        """An edited request's frame could not be written: send the client's own body, unless the event loop has already sent something."""
        assert call.asked is not None  # what could not be written
        thread.record.asked.pop()
        if call.instead.done():
            out, thread.view = call.instead.result(), decided.view
            call.asked = structs.replace(call.asked, reason=f"{decided.reason}; {why}")
        else:
            out, thread.acting, thread.view = Outgoing(call.body), None, None
            decided = self.decider.passed(thread, wire, decided)
            call.asked = structs.replace(
                call.asked, sent="original", edit=decided.edit, fallback=why, sent_bytes=len(call.body), shown=decided.shown
            )
        thread.record.add(call.asked)
        thread.unwritten[-1] = call.asked
        return out

    def answered(self, call: Call, status: int, headers: Mapping[str, str], body: bytes, ms: dict[str, float], error: str = "") -> None:
        """Record what came back; `body`: all bytes that the client got."""
        if call.thread is None or call.asked is None:
            return
        found = read_answer(call.api, body, dict(headers)) if body else Answer(error=error)
        secrets = secrets_of(call.headers)
        message = found.message if status < 400 else None
        if message is not None:
            message = stamped(cleaned(message, secrets), self.clock())
        frame = Answered(
            call.asked.n,
            self.clock(),
            status,
            message,
            found.usage if status < 400 else None,
            {name: round(value, 3) for name, value in ms.items()},
            without(error or (found.error if status < 400 else f"the server answered {status}"), secrets),
            call.refused,
            without(found.response_id, secrets),
        )
        self.threads.append(call.thread, frame)

    def refused(self, call: Call, status: int) -> None:
        """The server refused an edited body: the proxy sends the original once, and editing stops for this session."""
        call.refused = status
        if call.thread is None or call.asked is None:
            return
        why = f"editing stopped: the server answered {status} to an edited request"
        with call.thread.lock:
            call.thread.acting, call.thread.view = None, None
            self.threads.append(call.thread, Changed(self.clock(), stopped=why))

    def side(self, path: str, headers: Mapping[str, str], status: int) -> None:
        """Record a call outside the conversations."""
        self.threads.append(self._catch_all(), Side(self.clock(), without(path, secrets_of(headers)), status))

    def _unread(self, call: Call, reason: str) -> None:
        who = Who(who_sent(call.headers, None, call.upstream, call.api, self._salt).scope, "", "unread", "unknown")
        call.settle()
        thread = self._catch_all(call.api, who)
        call.thread, call.wire = thread, None
        reason, path = (without(text, secrets_of(call.headers)) for text in (reason, call.path))
        call.asked = Asked(time.time_ns(), call.at, 0, 0, reason="sent unchanged", fallback=reason, client_bytes=len(call.body), path=path)
        self.threads.append(thread, call.asked)

    def _failed(self, call: Call, error: Exception) -> None:
        """Record a failure outside the policy, as far as that is possible."""
        try:
            reason = f"{type(error).__name__}: {error}"
            if call.thread is None:
                self._unread(call, reason)
            elif call.asked is None:
                call.asked = Asked(time.time_ns(), call.at, 0, len(call.thread.record.digests), reason="sent unchanged", fallback=reason)
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
                thread = self.threads.create(found, wire, lambda *about: self._opened(about, found, wire, None), "")
        with thread.lock:
            if len(thread.record.sides) + len(thread.record.asked) > OUTSIDE_KEPT:
                thread.record = Record(thread.record.opened)
        return thread

    def _opened(self, about: tuple[str, str, bool], who: Who, wire: Wire, call: Call | None) -> Opened:
        name, parent, rewritten = about
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
            rewritten,
        )
