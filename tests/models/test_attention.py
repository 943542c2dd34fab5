"""Attention without a mask is masked attention, and only plain continuations do without."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pamer_lab.features import passes
from pamer_lab.features.extract import extract
from pamer_lab.features.values import trace_requests
from pamer_lab.models import attention
from pamer_lab.models.attention import NAME, causal, is_plain, without_mask
from tests.features.conftest import load_tiny, make_trace, save_kind


@pytest.mark.parametrize(("cached", "new"), [(0, 7), (5, 1), (5, 7), (130, 33)])
def test_new_tokens_see_the_cache_and_themselves_up_to_their_place(cached: int, new: int) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 6, new, 16), torch.randn(1, 2, cached + new, 16), torch.randn(1, 2, cached + new, 16)
    mask = torch.arange(cached + new)[None] <= torch.arange(new)[:, None] + cached
    wide = [item.repeat_interleave(3, dim=1) for item in (key, value)]
    expected = torch.nn.functional.scaled_dot_product_attention(query, *wide, attn_mask=mask, scale=0.3)
    found, _ = causal(None, query, key, value, None, scaling=0.3)
    assert torch.allclose(found, expected.transpose(1, 2), atol=1e-6)


def test_a_mask_is_refused_rather_than_ignored() -> None:
    one = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="mask"):
        causal(None, one, one, one, torch.ones(1, 1, 2, 2))


@pytest.mark.parametrize(
    ("facts", "plain"),
    [
        ({}, True),
        ({"layer_types": ["full_attention", "linear_attention"]}, True),
        ({"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 4}, False),
        ({"sliding_window": 4096}, False),
        ({"attn_logit_softcapping": 50.0}, False),
        ({"_attn_implementation": "eager"}, False),
    ],
)
def test_windows_and_soft_caps_keep_their_own_attention(facts: dict[str, Any], plain: bool) -> None:
    assert is_plain(SimpleNamespace(**{"_attn_implementation": "sdpa"} | facts)) == plain


def test_the_models_own_attention_is_back_after_a_pass() -> None:
    config = SimpleNamespace(_attn_implementation="sdpa")
    with pytest.raises(RuntimeError), without_mask(config):
        assert config._attn_implementation == NAME
        raise RuntimeError
    assert config._attn_implementation == "sdpa"


@pytest.mark.weights
@pytest.mark.parametrize("kind", ["llama", "qwen"])
def test_only_packed_branches_get_a_mask(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_tiny(save_kind(tmp_path / kind, kind), chunk=70)
    seen: list[bool] = []
    real = passes.Walk._forward

    def watch(walk: Any, *given: Any) -> Any:
        seen.append(len(given) > 4)
        return real(walk, *given)

    calls: list[int] = []
    monkeypatch.setattr(passes.Walk, "_forward", watch)
    monkeypatch.setattr(attention, "_joined", lambda *given, joined=attention._joined: calls.append(1) or joined(*given))
    extract(trace_requests([make_trace(6)], ["full", "recent2"], "faithful"), model)
    assert len(calls) > 0 and (any(seen) == (kind == "llama"))
