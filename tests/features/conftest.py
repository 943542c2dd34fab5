"""Small models that run the real code, a trace with everything in it, and the naive way to compute its states."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from pamer_lab.bench.measure import Family, save_tiny
from pamer_lab.features.inputs import inputs_of
from pamer_lab.features.serialise import serialiser_for
from pamer_lab.features.values import Request
from pamer_lab.models.frozen import FrozenModel, load_frozen
from pamer_lab.models.profiles import FrozenSettings, Profile
from pamer_lab.trajectory.values import Message, Tool, ToolCall, Trace, Usage

QWEN_TEMPLATE = (Path(__file__).parent / "qwen_like_template.jinja").read_text()


def make_trace(turns: int = 5, *, words: int = 6, usage: bool = False) -> Trace:
    """A safe trace: a search per turn, one with two calls, a user message in between, and a final answer."""
    messages = [Message("system", "You find facts."), Message("user", "Which port does the database use?\nSay only the number.")]
    for turn in range(turns - 1):
        calls = [ToolCall(f"c{turn}", "search", f'{{"query": "port <{turn}>", "limit": {turn + 3}}}')]
        if turn == 1:
            calls.append(ToolCall("c1b", "open", '{"path": "/etc/\\u00fcber.conf"}'))
        recorded = Usage(input_tokens=1000 + turn) if usage else None
        messages.append(Message("assistant", f"Looking, step {turn}." if turn != 2 else "", tuple(calls), usage=recorded))
        for call in calls:
            messages.append(
                Message("tool", f"result {turn} of {call.name}: " + "nothing here " * (words + turn), tool_call_id=call.id, name=call.name)
            )
        if turn == 1:
            messages.append(Message("user", "Go on, please."))
    messages.append(Message("assistant", "5432"))
    tools = (
        Tool("search", "Searches the files.", {"type": "object", "properties": {"query": {"type": "string"}}}),
        Tool("open", "Opens a file."),
    )
    return Trace("t-test", "q-test", "native", tuple(messages), tools)


def naive(model: FrozenModel, tokens: Any) -> Any:
    """All states of one forward pass, pooled afterwards: [layers, 2, width]."""
    import torch

    kept: dict[int, Any] = {}

    def keep(number: int) -> Any:
        return lambda module, inputs, output: kept.__setitem__(number, (output[0] if isinstance(output, tuple) else output)[0])

    handles = [module.register_forward_hook(keep(number)) for number, module in enumerate([*model.blocks, model.norm])]
    try:
        with torch.inference_mode():
            model.decoder(torch.as_tensor(np.asarray(tokens, dtype=np.int64))[None], use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
    states = torch.stack([kept[number] for number in sorted(kept)])
    return torch.stack([states[:, -1], states.mean(dim=1)], dim=1).numpy()


def naive_all(model: FrozenModel, requests: list[Request]) -> Any:
    serialiser = serialiser_for(model)
    return np.stack([naive(model, tokens) for request in requests for _, tokens in inputs_of(request, model, serialiser)])


def assert_same_states(found: Any, expected: Any) -> None:
    """The issue's bound: cosine at least 0.9999, greatest difference at most 1e-3 of the vector's norm."""
    norms = np.linalg.norm(expected, axis=-1)
    cosine = (found * expected).sum(axis=-1) / (norms * np.linalg.norm(found, axis=-1))
    assert cosine.min() >= 0.9999
    assert (np.abs(found - expected).max(axis=-1) / norms).max() <= 1e-3


def save_kind(folder: Path, kind: Family) -> Path:
    """A tiny model; the `qwen` one with a chat template like Qwen's."""
    saved = save_tiny(folder, kind)
    if kind == "qwen":
        (saved / "chat_template.jinja").write_text(QWEN_TEMPLATE)
    return saved


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: save_kind(tmp_path_factory.mktemp(kind), kind) for kind in get_args(Family)}


def load_tiny(folder: Path, *, limit: int = 0, kept: int = 2048, chunk: int = 0) -> FrozenModel:
    settings = FrozenSettings(model=str(folder), chunk=chunk)
    return load_frozen(Profile(name="tiny", frozen_model=settings, probe_limit=limit, prefix_kept=kept), "cpu")


@pytest.fixture(scope="session")
def llama(tiny_folders: dict[str, Path]) -> FrozenModel:
    return load_tiny(tiny_folders["llama"])


@pytest.fixture(scope="session")
def smollm() -> FrozenModel:
    return load_frozen("embedded", "cpu")
