"""Finds heads by name or folder: those in the package and those trained in a workspace.

Registered heads are in `heads/NAME/` of the workspace, one folder per name, as `artefact` writes them. Knows names and
facts; whether heads fit a loaded model is checked when they are used with it (`controller/heads_probe.py`).
"""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pamer_lab.errors import InputError, LabError
from pamer_lab.probes.artefact import FACTS, TRAIN, WEIGHTS, HeadSet
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode
from pamer_lab.storage.shared_files import publish, refresh, withdraw

PACKAGED = Path(__file__).parent / "heads"
"""Heads that come with the package, one folder per name."""
DEFAULTS = {
    "SmolLM2-135M-Instruct": (
        "smollm2-generated",
        "on 13 unseen real traces they keep 92 % of the evidence and smollm2-real 75 %; at equal tokens they lose 0.5 points to periodic "
        "summaries and smollm2-real 4.9; smollm2-real uses fewer tokens and costs less (docs/cost.md)",
    )
}
"""Model -> the packaged heads that vote by default, and why."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")

Source = Literal["package", "workspace", "folder"]
"""`package`: included with PaMER Lab. `workspace`: registered by `train --heads NAME`. `folder`: named by its path, not registered."""


@dataclass(frozen=True)
class NamedHeads:
    """A set of heads with the name by which it is requested."""

    name: str
    source: Source
    heads: HeadSet

    def identity(self) -> dict[str, str]:
        """What a run stores about the heads that voted."""
        heads = self.heads
        return {"name": self.name, "sha256": heads.sha256, "model": heads.model_name, "layer": heads.layer, "hint": heads.hint}

    def row(self) -> dict[str, Any]:
        """One line of `pamer-lab heads list`."""
        heads = self.heads
        made = heads.facts
        return self.identity() | {
            "width": heads.width,
            "pooling": heads.pooling,
            "context": heads.context,
            "target": heads.target,
            "probe_system_prompt": heads.probe_system_prompt,
            "count": heads.stack.count,
            "auroc": _mean_and_sd(made),
            "corpus": made.get("corpus", {}),
            "command": made.get("command", ""),
            "source": self.source,
            "folder": heads.folder,
            "default": self.is_default,
            **({"why_default": DEFAULTS[heads.model_name][1]} if self.is_default else {}),
            **({"unseen": made["unseen"], "sources": made.get("sources", {})} if "unseen" in made else {}),
        }

    @property
    def is_default(self) -> bool:
        """Whether these vote on their model by default."""
        return self.source == "package" and DEFAULTS.get(self.heads.model_name, ("", ""))[0] == self.name


def _mean_and_sd(made: dict[str, Any]) -> dict[str, Any] | None:
    found = made.get("metrics", {}).get("auroc")
    return {"mean": found["mean"], "sd": found["sd"], "seeds": len(found["seeds"])} if found else None


def is_name(text: str) -> bool:
    """Whether a text can name registered heads; anything else is a folder."""
    return bool(_NAME.fullmatch(text))


def list_heads(workspace: Path) -> tuple[list[NamedHeads], list[str]]:
    """All readable heads, packaged ones first, and a sentence for each unreadable folder."""
    found: list[NamedHeads] = []
    faults: list[str] = []
    refresh(workspace)
    for source, root in (("package", PACKAGED), ("workspace", workspace / "heads")):
        for facts in sorted(root.glob(f"*/{FACTS}")):
            try:
                found.append(NamedHeads(facts.parent.name, source, HeadSet.load(facts.parent)))  # type: ignore[arg-type]
            except LabError as error:
                faults.append(str(error))
    return found, faults


def find_heads(text: str, workspace: Path) -> NamedHeads:
    """The heads for a name or a folder."""
    refresh(workspace)
    for source, root in (("package", PACKAGED), ("workspace", workspace / "heads")):
        if is_name(text) and (root / text / FACTS).is_file():
            return NamedHeads(text, source, HeadSet.load(root / text))  # type: ignore[arg-type]
    folder = Path(text).expanduser()
    if (folder / FACTS).is_file():
        return NamedHeads(folder.resolve().name, "folder", HeadSet.load(folder))
    known = ", ".join(entry.name for entry in list_heads(workspace)[0]) or "none"
    raise InputError(f"there are no heads {text!r}: neither registered ({known}) nor a folder with a {FACTS}; train some: {TRAIN}")


def fitting_heads(model_name: str, workspace: Path) -> list[NamedHeads]:
    """All heads that read a model."""
    return [entry for entry in list_heads(workspace)[0] if entry.heads.model_name == model_name]


def heads_for(model_name: str, text: str, workspace: Path) -> NamedHeads:
    """The heads that vote on a model: the named ones, else the packaged default, else the only registered ones."""
    if text:
        named = find_heads(text, workspace)
        if named.heads.model_name != model_name:
            raise InputError(
                f"the heads {named.name} read {named.heads.model_name}, and the profile's model is {model_name}; "
                f"for it there are: {_names(fitting_heads(model_name, workspace)) or 'none'}. Train some: {TRAIN}"
            )
        return named
    fitting = fitting_heads(model_name, workspace)
    packaged = [entry for entry in fitting if entry.source == "package"]
    usual = [entry for entry in packaged if entry.is_default] or packaged
    if len(usual) == 1 or len(fitting) == 1:
        return (usual or fitting)[0]
    if not fitting:
        raise InputError(f"there are no heads for {model_name}, which are needed to vote. Train some: {TRAIN}")
    raise InputError(f"several heads read {model_name}: {_names(packaged or fitting)}; choose one with --heads")


def register(heads: HeadSet, name: str, workspace: Path) -> NamedHeads:
    """Store heads in the workspace under a name, replacing any that have it already."""
    check_name(name)
    folder = heads.save(workspace / "heads" / name)
    publish(workspace, folder / FACTS, folder / WEIGHTS)
    return NamedHeads(name, "workspace", HeadSet.load(folder))


RESERVED = frozenset({"default"})
"""Names with a special meaning where heads are chosen."""


def check_name(name: str) -> None:
    """Refuse a name that cannot be registered, before anything is trained."""
    if name in RESERVED:
        raise InputError(f"{name!r} is reserved for the heads that fit the model; choose another name")
    if not is_name(name):
        raise InputError(f"{name!r} cannot name heads: use letters, digits, dot, plus, hyphen and underscore, 64 at most")
    if (PACKAGED / name / FACTS).is_file():
        raise InputError(f"the heads {name!r} come with the package; choose another name")


def remove(name: str, workspace: Path) -> Path:
    """Remove registered heads; runs in which they voted keep their hash."""
    refuse_in_reviewer_mode("Removing heads", workspace)
    folder = workspace / "heads" / name
    if not is_name(name) or not (folder / FACTS).is_file():
        why = (
            "come with the package and cannot be removed" if is_name(name) and (PACKAGED / name / FACTS).is_file() else "are not registered"
        )
        raise InputError(f"the heads {name!r} {why}")
    withdraw(workspace, folder / FACTS, folder / WEIGHTS)
    (folder / FACTS).unlink()  # without it, the folder no longer counts as heads
    (folder / WEIGHTS).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _names(entries: Sequence[NamedHeads]) -> str:
    return ", ".join(entry.name for entry in entries)
