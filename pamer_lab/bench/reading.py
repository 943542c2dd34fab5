"""The time of a `pamer` replay relative to the bare forward pass it needs: part of `pamer-lab bench replay`.

A synthetic trace with a prefix of 1,300 tokens and 120 blocks of 50 to 3,000 tokens goes through the embedded model up to an early block,
so that the bench takes only minutes; everything but the model therefore has a larger share than at the heads' own layer. The bare pass
reads as many tokens up to the same block, in inputs of the trace's own lengths, without pooling, cache or store. Times are this process's
processor time with one torch thread. Hashed words replace the embedding model, which is not measured.
"""

import gc
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pamer_lab.bench.extract import recent_bound, resident
from pamer_lab.bench.measure import WORDS, fresh_peak, own_peak, say
from pamer_lab.controller.heads_probe import HeadsProbe
from pamer_lab.factory import Parts
from pamer_lab.features.inputs import inputs_of
from pamer_lab.features.pooling import Enough
from pamer_lab.features.serialise import serialiser_for
from pamer_lab.features.store import FeatureStore
from pamer_lab.features.values import trace_requests
from pamer_lab.models.embedder import HashingEmbedder
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.models.profiles import EMBEDDED, load_profile
from pamer_lab.models.speed import shape_of
from pamer_lab.models.tokenizer import profile_tokens
from pamer_lab.probes.artefact import HeadSet
from pamer_lab.probes.readout import HeadStack
from pamer_lab.runs.engine import ReplayOptions, replay
from pamer_lab.trajectory.values import Message, Tool, ToolCall, Trace
from pamer_lab.workspace import Workspace

PREFIX, BLOCKS, SHORTEST, LONGEST = 1_300, 120, 50, 3_000
DEPTH = 3
"""Blocks of the model that are run."""
PRODUCT_ROWS = 1_024
"""Rows of the matrix product that the reading is compared with."""


def reading_trace(model: FrozenModel, blocks: int = BLOCKS) -> Trace:
    """Blocks with lengths evenly spaced on a log scale between the shortest and the longest."""
    chance = random.Random(0)  # noqa: S311 - a fixed text, no secret

    def text(tokens: float) -> str:
        words = " ".join(chance.choice(WORDS) for _ in range(int(tokens)))
        return str(model.tokenizer.decode(model.tokenizer(words, add_special_tokens=False)["input_ids"][: int(tokens)]))

    messages = [Message("system", text(PREFIX - 60)), Message("user", "Who founded the museum named in the first letter?")]
    sizes = np.exp(np.linspace(np.log(SHORTEST), np.log(LONGEST), blocks))
    chance.shuffle(order := list(range(blocks)))
    for number, place in enumerate(order):
        call = ToolCall(f"c{number}", "search", f'{{"q": "letter {number}"}}')
        body = text(max(sizes[place] - 40, 1))
        messages += [Message("assistant", f"Letter {number}.", (call,)), Message("tool", body, tool_call_id=call.id, name="search")]
    return Trace("t-reading", "q-reading", "bench", tuple(messages), (Tool("search", "finds letters"),))


def measured(folder: Path, blocks: int = BLOCKS) -> tuple[dict[str, float], dict[str, Any]]:
    """Ratios, and the figures behind them."""
    import torch

    torch.set_num_threads(1)
    model = load_frozen("embedded", "cpu")
    trace = reading_trace(model, blocks)
    requests = trace_requests([trace], ["recent2"], "none")
    lengths = [len(tokens) for _, tokens in inputs_of(requests[0], model, serialiser_for(model))]
    bound = recent_bound(trace, model)
    workspace = Workspace(folder / "reading")
    workspace.add_traces([trace], profile_tokens(load_profile("embedded")))  # opens the store, which loads a large library
    bare_passes(model, lengths[0], lengths[:1])
    say(f"reading {bound:,} tokens for pamer")
    first, memory, computed, turns = _replayed(trace, model, "none", "pamer", workspace)
    second, _, _, _ = _replayed(trace, model, "none", "pamer+", workspace)
    say(f"pamer took {first:.0f} s of processor time; the bare pass takes about as much, then pamer with the hint")
    bare, bare_memory = _cost(lambda: bare_passes(model, computed, lengths))
    hinted, _, _, _ = _replayed(trace, model, "faithful", "pamer", Workspace(folder / "hinted"))
    product = matrix_product(model)
    shape = shape_of(EMBEDDED)
    operations = computed * DEPTH * (shape.operations if shape else 0.0) + attention_operations(lengths, model)
    ratios = {
        "pamer_tokens_vs_bound": computed / bound,
        "pamer_vs_bare_forward": first / bare,
        "second_policy_vs_first": second / first,
        "hint_vs_bare_forward": hinted / bare,
        "pamer_memory_vs_bare_forward": memory / bare_memory,
        "reading_vs_matrix_product": operations / first / product,
    }
    details = {
        "cpu_seconds": {"pamer": first, "pamer+ after it": second, "bare": bare, "hint": hinted},
        "extra_memory_bytes": {"pamer": memory, "bare": bare_memory},
        "tokens": {"computed": computed, "bound": bound, "prefix": PREFIX, "mean_input": float(np.mean(lengths))},
        "gflops": {"pamer": operations / first / 1e9, "matrix_product": product / 1e9},
        "turns": turns,
        "depth": DEPTH,
        "threads": 1,
    }
    return ratios, {"reading": details}


def _replayed(trace: Trace, model: FrozenModel, hint: str, policy: str, workspace: Workspace) -> tuple[float, int, int, int]:
    """Processor seconds, extra memory, tokens through the model, turns."""
    workspace.path.mkdir(parents=True, exist_ok=True)
    probe = HeadsProbe(model, some_heads(model, hint), FeatureStore(workspace.database, model))
    parts = Parts(embedder=HashingEmbedder(), probe=probe)
    turns = 0

    def work() -> None:
        nonlocal turns
        turns = len(replay(trace, policy, workspace, ReplayOptions(device="cpu", parts=parts)).turns)

    seconds, memory = _cost(work)
    return seconds, memory, probe.states.tokens_computed, turns


def some_heads(model: FrozenModel, hint: str) -> HeadSet:
    """Heads with random weights on an early block; they vote now and then."""
    chance = np.random.default_rng(0)
    weight = chance.normal(size=(5, model.width)).astype(np.float32)
    zeros, ones = np.zeros((5, model.width), np.float32), np.ones((5, model.width), np.float32)
    stack = HeadStack(mean=zeros, scale=ones, weight=weight, bias=np.zeros(5, np.float32))
    return HeadSet(stack, (0.5,) * 5, model.name, f"block:{DEPTH}", hint=hint)


def bare_passes(model: FrozenModel, tokens: int, lengths: list[int]) -> None:
    """Run as many tokens through the same blocks, as `transformers` does it, in inputs of these lengths in random order."""
    import torch

    def stop(*given: object) -> None:
        raise Enough

    handle = model.blocks[DEPTH - 1].register_forward_hook(stop)
    try:
        with torch.inference_mode():
            for length in random.Random(0).sample(lengths, len(lengths)):  # noqa: S311 - an order, no secret
                size, tokens = min(length, tokens), tokens - length
                if size <= 0:
                    break
                with suppress(Enough):
                    model.decoder(torch.as_tensor(np.arange(size, dtype=np.int64) % 1000)[None], use_cache=False)
    finally:
        handle.remove()


def attention_operations(lengths: list[int], model: FrozenModel) -> float:
    """Attention operations of the tokens after the prefix: each attends to everything before it in its input."""
    pairs = sum((length - PREFIX) * (length + PREFIX) / 2 for length in lengths)
    return 4.0 * pairs * model.width * DEPTH


def matrix_product(model: FrozenModel) -> float:
    """Operations per second of the model's widest matrix product."""
    import torch

    inner = int(model.decoder.config.intermediate_size)
    left, right = torch.ones(PRODUCT_ROWS, model.width), torch.ones(model.width, inner)
    best = min(_cost(lambda: [left @ right for _ in range(10)])[0] for _ in range(5))
    return 10 * 2.0 * PRODUCT_ROWS * model.width * inner / best


def _cost(work: Callable[[], object]) -> tuple[float, int]:
    gc.collect()
    before = resident()
    fresh_peak()
    began = time.process_time()
    work()
    return time.process_time() - began, max(1, own_peak() - before)
