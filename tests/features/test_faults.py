"""Memory that runs out: smaller chunks first, then one sentence with the figures. Faults are injected; no GPU is needed."""

from pathlib import Path
from typing import Any

import pytest

from pamer_lab.errors import ProbeError
from pamer_lab.features.extract import extract_traces
from pamer_lab.models.frozen import FrozenModel
from tests.features.conftest import assert_same_states, load_tiny, make_trace

pytestmark = pytest.mark.weights


class Small:
    """A decoder that has memory for so many tokens per pass."""

    def __init__(self, decoder: Any, most: int) -> None:
        self._decoder = decoder
        self._most = most
        self.config = decoder.config

    def __call__(self, **given: Any) -> Any:
        import torch

        result = self._decoder(**given)  # fails after the work, so that caches are left half changed
        if given["input_ids"].shape[1] > self._most:
            raise torch.OutOfMemoryError("CUDA out of memory (injected)")
        return result


@pytest.mark.parametrize("kind", ["llama", "qwen"])
def test_the_chunk_is_halved_until_it_fits_and_the_states_stay_right(tiny_folders: dict[str, Path], kind: str) -> None:
    model = load_tiny(tiny_folders[kind])
    expected = extract_traces([make_trace(6)], model, hint="faithful")
    model.chunk = 512
    model.decoder = Small(model.decoder, 130)
    found = extract_traces([make_trace(6)], model, hint="faithful")
    assert model.chunk == 128
    assert_same_states(found.vectors, expected.vectors)


def test_at_the_smallest_chunk_it_is_a_probe_error_with_the_figures(tiny_folders: dict[str, Path]) -> None:
    model: FrozenModel = load_tiny(tiny_folders["llama"])
    model.decoder = Small(model.decoder, 1)
    with pytest.raises(ProbeError, match=r"\b64\b.*probe_limit"):
        extract_traces([make_trace(6)], model)


@pytest.mark.gpu
def test_a_cuda_device_computes_in_bfloat16_and_agrees_with_the_cpu() -> None:
    import torch

    from pamer_lab.models.frozen import load_frozen

    if not torch.cuda.is_available():
        pytest.skip("not run here: this machine has no CUDA device")
    trace = make_trace(4)
    device, host = load_frozen("embedded", "cuda"), load_frozen("embedded", "cpu")
    assert device.dtype == "bfloat16"
    left, right = extract_traces([trace], device).of(), extract_traces([trace], host).of()
    assert (left * right).sum() / ((left**2).sum() * (right**2).sum()) ** 0.5 > 0.98
