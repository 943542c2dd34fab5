"""`pamer-lab bench extract`: trunk and branches against one forward pass per decision point, and against one bare pass.

One generated trace of 40 decisions, all layers, both poolings. Times are this process's own processor time with one torch thread, so that
other processes do not inflate them. The shortest of `ROUNDS` rounds counts (one round for a pass per decision point); the methods
alternate, so that a slow phase of the machine affects them all.
"""

import contextlib
import ctypes
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from pamer_lab.bench.measure import fresh_peak, own_peak
from pamer_lab.blocks import cut
from pamer_lab.features.extract import extract, extract_traces
from pamer_lab.features.inputs import inputs_of
from pamer_lab.features.pooling import POOLINGS, Pooler
from pamer_lab.features.serialise import Tokens, serialiser_for
from pamer_lab.features.store import FeatureStore, content_key, layer_names
from pamer_lab.features.values import trace_requests
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.storage import Database
from pamer_lab.trajectory.values import Message, Tool, ToolCall, Trace

HELP = "hidden states of all decision points: speed, memory, tokens, second run"
DECISIONS = 40
ROUNDS = 2
STORED_POINTS = 1_000


def generated_trace(name: str = "bench", decisions: int = DECISIONS) -> Trace:
    """A trace whose turns look like an agent's: a call, and a result of about forty tokens."""
    line = "the log shows a request from client {0} to port {1} that took {2} ms and ended with code {3}; "
    messages = [Message("system", "You are a careful agent."), Message("user", f"Find out why the service of {name} is slow. " * 12)]
    for turn in range(decisions - 1):
        text = line.format(turn * 7 % 101, 5000 + turn, turn * 13 % 997, turn % 5)
        messages.append(
            Message("assistant", f"Step {turn}: I look further.", (ToolCall(f"c{turn}", "search", f'{{"query": "log {turn}"}}'),))
        )
        messages.append(Message("tool", f"{turn}. {text}", tool_call_id=f"c{turn}", name="search"))
    messages.append(Message("assistant", "The disk is full."))
    return Trace(f"t-{name}", name, "generated", tuple(messages), (Tool("search", "Searches the logs.", {"type": "object"}),))


def run() -> tuple[dict[str, float], dict[str, Any]]:
    import torch

    torch.set_num_threads(1)
    model = load_frozen("embedded", "cpu")
    trace = generated_trace()
    serialiser = serialiser_for(model)
    inputs = [tokens for _, tokens in inputs_of(trace_requests([trace], ["full"], "none")[0], model, serialiser)]
    full, hinted = trace_requests([trace], ["full"], "none"), trace_requests([trace], ["full"], "faithful")
    seconds, memory = _turns(
        {"bare": lambda: bare(model, inputs[-1]), "full": lambda: extract(full, model), "hint": lambda: extract(hinted, model)}
    )
    seconds["naive"] = _seconds(lambda: naive(model, inputs))
    recent = extract(trace_requests([trace], ["recent2"], "none"), model, layers=["final"])
    second = _second_run(model)
    ratios = {
        "speedup_vs_naive": seconds["naive"] / seconds["full"],
        "vs_bare_forward": seconds["full"] / seconds["bare"],
        "recent2_tokens_vs_bound": recent.tokens_computed / recent_bound(trace, model),
        "hint_vs_none": seconds["hint"] / seconds["full"],
        "memory_vs_bare_forward": memory["full"] / memory["bare"],
        "second_run_tokens": second["tokens"],
        "second_run_seconds_1000_points": second["seconds"],
    }
    details = {"cpu_seconds": seconds, "extra_memory_bytes": memory, "decisions": DECISIONS, "tokens": len(inputs[-1]), "threads": 1}
    return ratios, details | {"model": model.name, "chunk": model.chunk, "recent2_tokens": recent.tokens_computed}


def bare(model: FrozenModel, tokens: Tokens) -> None:
    """One forward pass over the trace's tokens, as `transformers` does it, without pooling."""
    import torch

    with torch.inference_mode():
        model.decoder(torch.as_tensor(tokens.astype(np.int64), device=model.device)[None])


def naive(model: FrozenModel, inputs: list[Tokens]) -> None:
    """One forward pass per decision point, pooled by the same hooks."""
    with Pooler(model, range(model.layers + 1)) as pooler:
        for tokens in inputs:
            pooler.expect([len(tokens) - 1], np.ones((1, len(tokens)), dtype=bool))
            bare(model, tokens)
            pooler.collect()


def _measured(work: Callable[[], Any]) -> tuple[float, int]:
    """Processor seconds of a call, and its peak memory in bytes beyond what was allocated before it."""
    gc.collect()
    _give_back()
    before = resident()
    fresh_peak()
    seconds = _seconds(work)
    return seconds, max(1, own_peak() - before)


def _give_back() -> None:
    """Return freed memory to the system if the C library can, so that no call reuses what another one left."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def resident() -> int:
    """Memory of this process in bytes."""
    return int(psutil.Process().memory_info().rss)


def _turns(ways: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, int]]:
    """Shortest seconds and smallest extra memory of each method."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    memory: dict[str, list[int]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, work in ways.items():
            taken, extra = _measured(work)
            seconds[name].append(taken)
            memory[name].append(extra)
    return {name: min(found) for name, found in seconds.items()}, {name: min(sizes) for name, sizes in memory.items()}


def _seconds(work: Callable[[], Any]) -> float:
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def recent_bound(trace: Trace, model: FrozenModel) -> int:
    """The minimum number of tokens to read: the prefix once, and every point's recent blocks and generation prompt."""
    serialiser = serialiser_for(model)
    pieces = cut(trace.messages)
    prompt = len(serialiser.tokens((), ()))
    total = serialiser.count(trace.messages[: pieces.prefix_end], trace.tools)
    for t in range(len(pieces.blocks)):
        recent = pieces.blocks[max(0, t - 2) : t]
        total += sum(serialiser.count(block.of(trace.messages), ()) for block in recent) + prompt
    return total


def _second_run(model: FrozenModel) -> dict[str, float]:
    """Time and tokens of reading a thousand stored points; their rows are noise, since only reading is measured."""
    traces = [generated_trace(f"service-{number}") for number in range(STORED_POINTS // DECISIONS)]
    serialiser = serialiser_for(model)
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureStore(Database(Path(folder) / "lance"), model)
        columns = [f"{layer}_{pooling}" for layer in layer_names(model) for pooling in POOLINGS]
        noise = np.random.default_rng(0)
        for request in trace_requests(traces, ["full"], "none"):
            inputs = [tokens for _, tokens in inputs_of(request, model, serialiser)]
            keys = [content_key(model, serialiser.name, tokens) for tokens in inputs]
            store.write(
                keys, [len(tokens) for tokens in inputs], columns, noise.random((len(keys), len(columns), model.width), dtype=np.float32)
            )
        started = time.process_time()
        found = extract_traces(traces, model, ["full"], workspace=folder)
        return {"seconds": time.process_time() - started, "tokens": found.tokens_computed}
