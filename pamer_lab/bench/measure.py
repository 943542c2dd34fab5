"""What the benchmarks share: clocks and memory gauges (best of several runs), made-up traces, and a small model."""

import contextlib
import gc
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import orjson

from pamer_lab.models import embedded
from pamer_lab.trajectory.values import Message, ToolCall


def best_seconds(work: Callable[[], Any], *, repeats: int = 3, collect: bool = True) -> float:
    """The shortest of several runs, in seconds of process time, which other processes do not inflate; `collect`: collect garbage first."""
    times = []
    for _ in range(repeats):
        if collect:
            gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def peak_memory(module: str, function: str, *arguments: str) -> int:
    """Bytes by which a call raises the peak memory of a fresh process, measured after its imports."""
    program = (
        f"import sys; from {module} import {function} as work; from pamer_lab.bench.measure import fresh_peak, own_peak;"
        "before = fresh_peak(); work(*sys.argv[1:]); print(own_peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, check=True)
    return int(done.stdout)


def fresh_peak() -> int:
    """Reset this process's peak memory, if the system allows it, and return the current peak."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return own_peak()


def own_peak() -> int:
    """Peak memory of this process in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


WORDS = [
    *"archive museum founder editor the letter of harbour station reading 1932 catalogue".split(),
    *"volume was city report found in and by gallery river press née".split(),
]
RARE = ["Łódź", "–", "東京", "\U0001f4da"]
"""Occasional wide characters, as in real tool output: Python then stores all of the text in a wider form."""


def sentence(rng: random.Random, words: int) -> str:
    chosen = rng.choices(WORDS, k=words)
    if rng.random() < 0.1:
        chosen[-1] = rng.choice(RARE)
    return " ".join(chosen)


def messages(turns: int, *, seed: int = 0, words: int = 120) -> Iterator[Message]:
    """A trace of `turns` turns, each with one call and one result of about `words` words."""
    rng = random.Random(seed)  # noqa: S311 - text for a benchmark
    yield Message("system", sentence(rng, 60))
    yield Message("user", sentence(rng, 40))
    for turn in range(turns):
        call = ToolCall(f"call_{turn}", "search", orjson.dumps({"query": sentence(rng, 6), "turn": turn}).decode())
        yield Message("assistant", sentence(rng, 20), (call,))
        yield Message("tool", sentence(rng, rng.randrange(words // 2, words * 2)), tool_call_id=call.id, name="search")


def chat_object(turns: int, *, seed: int = 0) -> dict[str, object]:
    """The same as an OpenAI chat object."""
    rows: list[dict[str, object]] = []
    for message in messages(turns, seed=seed):
        row: dict[str, object] = {"role": message.role, "content": message.content}
        if message.tool_calls:
            row["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in message.tool_calls
            ]
        if message.tool_call_id:
            row["tool_call_id"] = message.tool_call_id
        rows.append(row)
    return {"messages": rows}


def chat_file(size: int, *, lines: bool) -> bytes:
    """About `size` bytes of chat: one conversation per line, or one list of conversations."""
    conversations: list[bytes] = []
    total = 0
    while total < size:
        conversations.append(orjson.dumps(chat_object(60, seed=len(conversations))))
        total += len(conversations[-1])
    return b"\n".join(conversations) if lines else b"[" + b",".join(conversations) + b"]"


Family = Literal["llama", "qwen"]
"""`llama`: attention only. `qwen`: Qwen3.5's form, three linear blocks to one of attention."""


def save_tiny(folder: Path, family: Family = "llama", *, blocks: int = 3, positions: int = 4096, tokenizer: Any = None) -> Path:
    """Save a tiny random model, with SmolLM2's tokenizer unless another is given; `blocks` applies to `llama` only."""
    import torch
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    torch.manual_seed(0)
    tokenizer = tokenizer or AutoTokenizer.from_pretrained(embedded.prepare())
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }
    model = _llama(shape, blocks, positions) if family == "llama" else _qwen(shape, positions)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3.0)  # default initialisation is so small that blocks would hardly matter
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _llama(shape: dict[str, Any], blocks: int, positions: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**shape, num_hidden_layers=blocks, max_position_embeddings=positions))  # type: ignore[no-untyped-call]


def _qwen(shape: dict[str, Any], positions: int) -> Any:
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    linear: dict[str, Any] = {
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
    }
    config = Qwen3_5TextConfig(**shape, **linear, num_hidden_layers=4, head_dim=16, max_position_embeddings=positions)
    return Qwen3_5ForCausalLM(config)  # type: ignore[no-untyped-call]


def say(text: str) -> None:
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)
