"""Heads on disk: `heads.safetensors` (weights, standardisation) and `heads.json` (everything else), never pickle.

Knows which model, layer, pooling and context the heads read, so that a caller can compute exactly that vector; does not know how to
compute it. Both files are written whole, the JSON last: a folder with a JSON is complete.
Invariant: a loaded set matches the SHA-256 in its JSON, has consistent tensors, one threshold per head, and finite weights.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from pamer_lab.errors import InputError, ModelError, ProbeError
from pamer_lab.features.pooling import POOLINGS
from pamer_lab.features.serialise import Hint
from pamer_lab.opening import parse_json, read_file, read_text
from pamer_lab.probes.readout import Floats, HeadStack, logit, sigmoid
from pamer_lab.storage.files import write_whole
from pamer_lab.trajectory.values import Target

FORMAT = 1
WEIGHTS = "heads.safetensors"
FACTS = "heads.json"
MOST_WEIGHTS = 500_000_000
"""Maximum size of a weights file in bytes; the paper's largest heads need a hundredth of that."""
TRAIN = "pamer-lab train TRACES... --heads NAME"
"""The command that trains heads, for messages."""
CHOICES = {"pooling": POOLINGS, "hint": get_args(Hint), "target": get_args(Target)}
"""Settings of heads with a fixed set of values."""


@dataclass(frozen=True)
class HeadSet:
    """The heads that vote on one target, with everything needed to feed them."""

    stack: HeadStack
    thresholds: tuple[float, ...]
    """One probability per head: the head says yes at or above it. Chosen by validation F1."""
    model_name: str
    layer: str
    """`block_K` for the output of block K (counted from 1), `final` for the state after the final norm."""
    pooling: str = "last"
    context: str = "recent2"
    hint: str = "none"
    probe_system_prompt: str = ""
    """Goes before the trace's own system text; empty: nothing is added."""
    target: Target = "compression"
    seeds: tuple[int, ...] = ()
    """The split and initialisation seed of each head."""
    facts: dict[str, Any] = field(default_factory=dict)
    """How they were made: corpus hash, command, metrics, teacher."""
    model_fingerprint: str = ""
    """Hash of the model's configuration and weights; empty: the model is identified only by name and width."""
    folder: str = ""
    """The folder they were loaded from, for messages; empty if they were made here."""

    def __post_init__(self) -> None:
        if len(self.thresholds) != self.stack.count:
            raise ModelError(f"{self.stack.count} heads need {self.stack.count} thresholds, not {len(self.thresholds)}")
        if not all(0.0 < threshold < 1.0 for threshold in self.thresholds):
            raise ModelError(f"thresholds are probabilities between 0 and 1, not {list(self.thresholds)}")
        if self.seeds and len(self.seeds) != self.stack.count:
            raise ModelError(f"{self.stack.count} heads have {self.stack.count} seeds, not {len(self.seeds)}")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise ModelError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")

    @property
    def width(self) -> int:
        return self.stack.width

    @cached_property
    def sha256(self) -> str:
        """Identity of the heads: a hash of everything that affects a vote, but not of how they were made or where they are stored."""
        from safetensors.numpy import save

        facts = [self.model_name, self.layer, self.pooling, self.context, self.hint, self.probe_system_prompt, self.target]
        digest = hashlib.sha256(json.dumps([*facts, list(self.thresholds)]).encode())
        digest.update(save(self.stack.tensors()))
        return digest.hexdigest()

    @property
    def threshold_logits(self) -> npt.NDArray[np.float64]:
        """The thresholds on the logit scale, which votes and margins use."""
        return logit(np.asarray(self.thresholds))

    def logits(self, vector: npt.NDArray[Any]) -> Floats:
        """Logits of all heads for one vector [d] -> [heads]; `ProbeError` if the vector is not finite."""
        if vector.shape != (self.width,):
            raise ProbeError(f"the heads read vectors of width {self.width}, not of shape {tuple(vector.shape)}")
        if not np.isfinite(vector).all():
            raise ProbeError("the hidden state contains NaN or infinity, so the heads cannot vote")
        return self.stack.logits(vector)

    def probabilities(self, vector: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Probabilities of all heads for one vector [d] -> [heads]."""
        return sigmoid(self.logits(vector))

    def votes(self, logits: npt.NDArray[Any]) -> tuple[bool, ...]:
        """One vote per head."""
        return tuple(bool(vote) for vote in np.asarray(logits, dtype=np.float64) >= self.threshold_logits)

    def require(self, model_name: str, width: int, fingerprint: str = "") -> "HeadSet":
        """These heads, if they belong to the model; otherwise an `InputError` that says how to train new ones."""
        if model_name != self.model_name or width != self.width:
            raise InputError(
                f"these heads read {self.model_name} (width {self.width}), but the model is {model_name} (width {width}); "
                f"train heads for it: {TRAIN}",
                path=self.folder,
            )
        if fingerprint and self.model_fingerprint and fingerprint != self.model_fingerprint:
            raise InputError(
                f"these heads were trained on another {model_name} (its configuration or weights differ: {self.model_fingerprint[:12]}, "
                f"here {fingerprint[:12]}); train heads for this one: {TRAIN}",
                path=self.folder,
            )
        return self

    def save(self, folder: str | Path) -> Path:
        """Write both files; an older set in the folder is replaced."""
        from safetensors.numpy import save

        folder = Path(folder)
        weights = save(self.stack.tensors())
        write_whole(folder / WEIGHTS, weights, parents=True)
        facts = {
            "format": FORMAT,
            "model": self.model_name,
            "width": self.width,
            **({"model_fingerprint": self.model_fingerprint} if self.model_fingerprint else {}),
            "layer": self.layer,
            "pooling": self.pooling,
            "context": self.context,
            "hint": self.hint,
            "probe_system_prompt": self.probe_system_prompt,
            "target": self.target,
            "capacity": self.stack.capacity,
            "seeds": list(self.seeds),
            "thresholds": list(self.thresholds),
            "sha256": hashlib.sha256(weights).hexdigest(),
            "facts": self.facts,
        }
        write_whole(folder / FACTS, (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode())
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> "HeadSet":
        """Read a folder that `save` wrote; for anything else, the error says what to do."""
        folder = Path(folder)
        facts = _read_facts(folder)
        stack = _read_stack(folder, str(facts.get("sha256", "")))
        for name, found in (("width", stack.width), ("capacity", stack.capacity)):
            if facts.get(name) != found:
                reason = f"names {name} {facts.get(name)!r}, and {WEIGHTS} holds {name} {found!r}; train new heads: {TRAIN}"
                raise InputError(reason, path=str(folder / FACTS))
        try:
            return cls(
                stack=stack,
                thresholds=tuple(float(value) for value in facts["thresholds"]),
                model_name=facts["model"],
                layer=facts["layer"],
                pooling=facts["pooling"],
                context=facts["context"],
                hint=facts["hint"],
                probe_system_prompt=facts["probe_system_prompt"],
                target=facts["target"],
                seeds=tuple(facts["seeds"]),
                facts=facts["facts"],
                model_fingerprint=str(facts.get("model_fingerprint", "")),
                folder=str(folder),
            )
        except (KeyError, TypeError, ValueError, ModelError) as error:
            raise InputError(f"does not describe a set of heads ({error}); train new ones: {TRAIN}", path=str(folder / FACTS)) from error


def _read_facts(folder: Path) -> dict[str, Any]:
    path = folder / FACTS
    try:
        facts = parse_json(read_text(path))
    except FileNotFoundError:
        raise InputError(f"there are no heads here; train some: {TRAIN}", path=str(folder)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error}); train new heads: {TRAIN}", path=str(path)) from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        found = facts.get("format") if isinstance(facts, dict) else None
        raise InputError(f"has format {found}, but this program reads {FORMAT}; train new heads: {TRAIN}", path=str(path))
    return facts


def _read_stack(folder: Path, sha256: str) -> HeadStack:
    from safetensors.numpy import load

    path = folder / WEIGHTS
    try:
        data = read_file(path, MOST_WEIGHTS)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise InputError(f"does not have the SHA-256 that {FACTS} names; train new heads: {TRAIN}", path=str(path))
        tensors = load(data)
    except InputError:
        raise
    except Exception as error:  # safetensors raises an exception type that is not part of its public API
        raise InputError(f"cannot be read ({error}); train new heads: {TRAIN}", path=str(path)) from error
    try:
        stack = HeadStack(**tensors)
        fault = stack.fault()
    except TypeError as error:
        fault = str(error)
    if fault:
        raise InputError(f"does not contain heads ({fault}); train new ones: {TRAIN}", path=str(path))
    return stack
