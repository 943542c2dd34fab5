"""Causal attention of a pass that continues a cache, without a mask.

`scaled_dot_product_attention` has a causal kernel only if nothing is cached; after a cache, `transformers` makes a mask, which takes a
slower kernel and a matrix of all pairs. Here the new tokens attend to the cache completely and to themselves causally, and both are
joined by the sums of their exponentials; a GPU's flash kernel does that by itself.
Invariant: the result is that of the masked attention, within float tolerance.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

NAME = "pamer_lab_causal"
PLAIN = {"full_attention", "linear_attention"}
"""Layer types without an attention window."""


def is_plain(config: Any) -> bool:
    """Whether a model's attention is plain causal attention in every layer: no window, no soft cap."""
    types = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None) if types is None else None
    capped = any(getattr(config, name, None) for name in ("attn_logit_softcapping", "attention_chunk_size"))
    return not window and not capped and (types is None or set(types) <= PLAIN) and config._attn_implementation == "sdpa"


@contextmanager
def without_mask(config: Any) -> Iterator[None]:
    """While inside, a pass of this model makes no mask; only for plain continuations of single sequences."""
    _register()
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before


@cache
def _register() -> None:
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, causal)


def causal(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, dropout: float = 0.0, scaling: float | None = None, **given: Any
) -> tuple[Any, None]:
    """Attention of new tokens [1, heads, new, width] to all keys [1, heads or fewer, cached + new, width]."""
    from torch.nn.attention.bias import causal_lower_right
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.integrations.sdpa_attention import repeat_kv

    if attention_mask is not None:
        raise ValueError("a pass without a mask was given one")
    groups = query.shape[1] // key.shape[1]
    key, value = repeat_kv(key, groups), repeat_kv(value, groups)
    new, cached = query.shape[2], key.shape[2] - query.shape[2]
    if new == 1 or not cached:
        found = scaled_dot_product_attention(query, key, value, is_causal=new > 1, scale=scaling)
    elif query.device.type == "cpu" and key.shape[-1] == value.shape[-1]:
        found = _joined(query, key, value, cached, scaling)
    else:
        found = scaled_dot_product_attention(query, key, value, attn_mask=causal_lower_right(new, cached + new), scale=scaling)
    return found.transpose(1, 2).contiguous(), None


def _joined(query: Any, key: Any, value: Any, cached: int, scaling: float | None) -> Any:
    import torch

    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    own, own_sum = attend(query, key[:, :, cached:], value[:, :, cached:], 0.0, True, scale=scaling)
    old, old_sum = attend(query, key[:, :, :cached], value[:, :, :cached], 0.0, False, scale=scaling)
    share = torch.sigmoid(old_sum - own_sum).unsqueeze(-1).to(own.dtype)  # the sums are logarithms, [1, heads, new]
    return torch.lerp(own, old, share)
