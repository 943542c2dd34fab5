"""A small real HTTP server that misbehaves on request: slow, 429, 500, cut connections, wrong JSON, wrong shapes."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.loopback import listening

CHAT = {
    "id": "x",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": '{"steps": [1, 2]}'}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}


def embedding_answer(count: int, dimensions: int) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": number, "embedding": [float(number + 1)] * dimensions} for number in reversed(range(count))]
    return {"object": "list", "model": "m", "data": rows, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


class FaultServer:
    """Answers each request by the next plan; the last plan stays."""

    def __init__(self, plans: list[Any]) -> None:
        self.plans = plans
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.over = threading.Event()

    def next_plan(self) -> Any:
        return self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]


@contextmanager
def serving(*plans: Any) -> Iterator[FaultServer]:
    """A plan is a status number, `slow`, `cut`, `dripping`, `endless`, raw text, the JSON to answer, or a status with its text."""
    state = FaultServer(list(plans))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(body)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            plan = state.next_plan()
            if plan == "slow":
                time.sleep(1.0)
                plan = CHAT
            if plan in ("dripping", "endless"):
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):  # until the client has enough
                    while not state.over.wait(0.05 if plan == "dripping" else 0.0):
                        self.wfile.write(b" " * (1 if plan == "dripping" else 100_000))
                return
            if plan == "cut":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b'{"id": "x", "choi')
                self.connection.close()
                return
            status, answer = (plan, '{"error": {"message": "on purpose"}}') if isinstance(plan, int) else (200, plan)
            if isinstance(plan, tuple):
                status, answer = plan
            data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with listening(server) as address:
        state.url = f"{address}/v1"
        try:
            yield state
        finally:
            state.over.set()
