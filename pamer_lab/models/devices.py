"""Which device and number format to compute with, and how much memory a frozen model needs, from its geometry alone.

Nothing is loaded, and torch is imported only to ask for a device. The parameter count is exact for the geometries named here (a test
counts them on torch's meta device); the working memory is an estimate.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pamer_lab.counts import whole_number
from pamer_lab.errors import InputError, ModelError
from pamer_lab.opening import parse_json, read_file


def resolve_device(name: str = "auto") -> str:
    """`auto`, `cpu`, `cuda`, `cuda:N` or `mps` -> an available device; `auto` never fails."""
    import torch

    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    kind, _, number = name.partition(":")
    if kind == "auto" and not number:
        return "cuda" if has_cuda else "mps" if has_mps else "cpu"
    card = whole_number(number) if number else 0
    if kind not in ("cpu", "cuda", "mps") or card is None or card < 0 or (number and kind != "cuda"):
        raise InputError(f"unknown device {name!r}; known: auto, cpu, cuda, cuda:N, mps")
    if kind == "cuda" and not has_cuda:
        raise ModelError("no CUDA device found; use --device cpu, or see: pamer-lab doctor")
    if kind == "cuda" and number and card >= torch.cuda.device_count():
        raise ModelError(f"there is no {name}; this machine has {torch.cuda.device_count()} CUDA device(s)")
    if kind == "mps" and not has_mps:
        raise ModelError("no MPS device found; use --device cpu")
    return name


def resolve_dtype(name: str, device: str) -> Any:
    """The torch dtype for a setting: bfloat16 is slower than float32 on a CPU, so a CPU means float32."""
    import torch

    if name != "auto":
        return getattr(torch, name)
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return torch.float16 if device == "mps" else torch.float32


BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
HEADROOM = 1.1
"""Factor for what the allocator and the libraries need on top."""
CARDS = [
    ("RTX 4060 Ti, T4", 16),
    ("RTX 3090/4090, L4, A10", 24),
    ("RTX 5090, V100 32 GB", 32),
    ("A100 40 GB", 40),
    ("L40S, A6000", 48),
    ("A100/H100 80 GB", 80),
]
"""Common cards and their memory in GB."""


@dataclass(frozen=True)
class Geometry:
    """The numbers of a decoder that decide its memory."""

    blocks: int
    width: int
    intermediate: int
    vocabulary: int
    query_heads: int
    key_heads: int
    head_width: int
    tied: bool = False
    """The language head shares the embedding's weights."""
    linear_blocks: int = 0
    """Blocks with a recurrent state instead of keys and values (gated delta rule)."""
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_head_width: int = 0
    convolution: int = 0
    gated: bool = False
    """Attention has an output gate and normalised queries and keys, as in Qwen3.5."""

    @property
    def parameters(self) -> int:
        head = 0 if self.tied else self.vocabulary * self.width
        common = 3 * self.width * self.intermediate + 2 * self.width
        queries, keys = self.query_heads * self.head_width, self.key_heads * self.head_width
        attention = self.width * (queries * (2 if self.gated else 1) + 2 * keys) + queries * self.width
        attention += 2 * self.head_width if self.gated else 0
        linear_keys, linear_values = self.linear_key_heads * self.linear_head_width, self.linear_value_heads * self.linear_head_width
        mixed = 2 * linear_keys + linear_values
        linear = self.width * (mixed + 2 * linear_values + 2 * self.linear_value_heads) + mixed * self.convolution
        linear += 2 * self.linear_value_heads + self.linear_head_width
        full_blocks = self.blocks - self.linear_blocks
        return (
            self.vocabulary * self.width + head + self.width + self.blocks * common + full_blocks * attention + self.linear_blocks * linear
        )


QWEN35_9B = Geometry(32, 4096, 12288, 248320, 16, 4, 256, False, 24, 16, 32, 128, 4, True)
"""The default geometry of `Qwen3_5TextConfig`."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes by purpose; every number except `weights` is an estimate."""

    weights: int
    cache: int
    """Keys, values and recurrent states of one complete input, and one copy of the recurrent states."""
    working: int
    """Tensors of one chunk, its mask included."""

    @property
    def total(self) -> int:
        return int((self.weights + self.cache + self.working) * HEADROOM)


def estimate(shape: Geometry, tokens: int, chunk: int, dtype: str = "bfloat16") -> MemoryEstimate:
    """Memory for an input of `tokens`, computed `chunk` tokens at a time."""
    size = BYTES[dtype]
    keys = 2 * shape.key_heads * shape.head_width * tokens * size * (shape.blocks - shape.linear_blocks)
    state = shape.linear_value_heads * shape.linear_head_width**2 * 4
    mixed = (2 * shape.linear_key_heads + shape.linear_value_heads) * shape.linear_head_width * shape.convolution * size
    rows = min(chunk, tokens)
    wide = 3 * shape.intermediate + 6 * shape.width + 3 * shape.query_heads * shape.head_width
    repeated = 2 * shape.query_heads * shape.head_width * tokens * size  # keys and values of one block, repeated for all heads
    linear = 10 * rows * shape.linear_value_heads * shape.linear_head_width * 4  # the delta rule computes in float32
    working = rows * wide * size + rows * shape.width * 4 + rows * tokens * size + repeated + linear
    return MemoryEstimate(shape.parameters * size, keys + 2 * (state + mixed) * shape.linear_blocks, working)


def fitting_cards(needed: int) -> list[str]:
    """Cards from `CARDS` whose memory is enough."""
    return [f"{name} ({size} GB)" for name, size in CARDS if size * 1e9 >= needed]


def geometry_of(folder: Path) -> Geometry:
    """The geometry in a model folder's `config.json`."""
    config: dict[str, Any] = parse_json(read_file(folder / "config.json"))
    config = config.get("text_config") or config
    heads = config["num_attention_heads"]
    kinds = config.get("layer_types") or []
    return Geometry(
        blocks=config["num_hidden_layers"],
        width=config["hidden_size"],
        intermediate=config["intermediate_size"],
        vocabulary=config["vocab_size"],
        query_heads=heads,
        key_heads=config.get("num_key_value_heads") or heads,
        head_width=config.get("head_dim") or config["hidden_size"] // heads,
        tied=bool(config.get("tie_word_embeddings")),
        linear_blocks=kinds.count("linear_attention"),
        linear_key_heads=config.get("linear_num_key_heads") or 0,
        linear_value_heads=config.get("linear_num_value_heads") or 0,
        linear_head_width=config.get("linear_key_head_dim") or 0,
        convolution=config.get("linear_conv_kernel_dim") or 0,
        gated="qwen3_5" in str(config.get("model_type")),
    )
