"""Which device and number format to compute with; no model is known here."""

from typing import Any

from pamer_lab.errors import InputError, ModelError


def resolve_device(name: str = "auto") -> str:
    """`auto`, `cpu`, `cuda`, `cuda:N` or `mps` -> a device that is here; `auto` never fails."""
    import torch

    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    kind, _, number = name.partition(":")
    if kind == "auto" and not number:
        return "cuda" if has_cuda else "mps" if has_mps else "cpu"
    if kind not in ("cpu", "cuda", "mps") or (number and (kind != "cuda" or not number.isdigit())):
        raise InputError(f"unknown device {name!r}; known: auto, cpu, cuda, cuda:N, mps")
    if kind == "cuda" and not has_cuda:
        raise ModelError("no CUDA device found; use --device cpu, or see: pamer-lab doctor")
    if kind == "cuda" and number and int(number) >= torch.cuda.device_count():
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
