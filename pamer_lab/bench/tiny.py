"""Tiny models with random weights, saved like any other, so that the real code runs quickly. The same call gives the same weights."""

from pathlib import Path
from typing import Any, Literal

from pamer_lab.models import embedded

Family = Literal["llama", "qwen"]
"""`llama`: attention only. `qwen`: Qwen3.5's form, three linear blocks to one of attention."""


def save_tiny(folder: Path, family: Family = "llama", *, blocks: int = 3, positions: int = 4096, tokenizer: Any = None) -> Path:
    """A saved model, with SmolLM2's tokenizer unless another is given; `blocks` holds for `llama`."""
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
