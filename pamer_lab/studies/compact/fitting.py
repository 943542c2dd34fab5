"""A representation -> logits of all targets and seeds, fitted once and stored in the workspace.

On disk: table `condition_logits`, one row per fit; the key is a hash of everything the fit depends on (representation, labels, splits,
teacher, training), so that a stopped study can resume and a changed input is fitted again. States that are read in parts have the same key
as in memory.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pamer_lab.probes.readout import Floats, sigmoid
from pamer_lab.probes.training import Training
from pamer_lab.storage import Database, TableSpec, equals
from pamer_lab.studies.compact.gru import fit_steps
from pamer_lab.studies.compact.rows import parts
from pamer_lab.studies.compact.values import Columns, Representation, Steps
from pamer_lab.studies.distill import Lab
from pamer_lab.studies.layerwise import fit_probes

VERSION = 1
"""Incremented whenever fitting changes, so that older logits are not reused."""

LOGITS = TableSpec(
    name="condition_logits",
    key=("key",),
    schema=pa.schema([("key", pa.string()), ("condition", pa.string()), ("logits", pa.large_binary())]),
)


@dataclass
class Fitter:
    """Fits representations on one study's decisions and splits."""

    lab: Lab
    database: Database | None = None
    training: Training | None = None
    hits: int = 0
    """Fits that were in the workspace."""

    def fit(self, name: str, representation: Representation, teacher: Floats | None = None) -> Floats:
        """Logits [T, S, n]; `teacher` is used only if the representation is taught."""
        taught = isinstance(representation, Columns) and representation.taught
        scores = sigmoid(teacher).astype(np.float32) if taught and teacher is not None else None
        key = self._key(representation, scores)
        shape = (len(self.lab.decisions.labels), len(self.lab.splits), len(self.lab.decisions))
        if self.database is not None and self.database.exists(LOGITS):
            found = self.database.rows(LOGITS, where=equals("key", key))
            if found:
                self.hits += 1
                return np.frombuffer(found[0]["logits"], dtype="<f4").astype(np.float32).reshape(shape)
        logits = self._fit(representation, scores)
        if self.database is not None:
            self.database.upsert(LOGITS, [{"key": key, "condition": name, "logits": logits.astype("<f4").tobytes()}])
        return logits

    def _fit(self, representation: Representation, scores: Floats | None) -> Floats:
        lab = self.lab
        match representation:
            case Columns():
                features = representation.features
                rows = np.ascontiguousarray(features[None]) if isinstance(features, np.ndarray) else features
                fitted = fit_probes(lab.decisions, lab.splits, rows, "mlp", teacher=scores, training=self.training, device=lab.device)
                only: Floats = fitted.logits[0]
                return only
            case Steps():
                return fit_steps(lab.decisions, lab.splits, representation, training=self.training, device=lab.device)

    def _key(self, representation: Representation, scores: Floats | None) -> str:
        decisions = self.lab.decisions
        training = (self.training or Training()).model_dump_json()
        digest = hashlib.sha256(f"{VERSION}|{type(representation).__name__}|{training}|".encode())
        digest.update(repr([split.seed for split in self.lab.splits]).encode())
        for part in (decisions.labels, decisions.counts, *(split.part for split in self.lab.splits)):
            digest.update(np.ascontiguousarray(part).tobytes())
        for rows in parts(representation.features):
            digest.update(np.ascontiguousarray(rows).data)
        if isinstance(representation, Steps):
            digest.update(str(representation.width).encode())
            for rows in parts(representation.blocks.states):
                digest.update(np.ascontiguousarray(rows).data)
            digest.update(representation.blocks.places.tobytes())
        if scores is not None:
            digest.update(scores.tobytes())
        return digest.hexdigest()
