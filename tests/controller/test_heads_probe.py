"""Which heads the controller votes with."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pamer_lab.controller.heads_probe import HeadsProbe
from pamer_lab.errors import InputError
from tests.probes.test_artefact import heads

MODEL: Any = SimpleNamespace(name="Some-Model", width=12, layers=4, fingerprint="f")


def test_heads_of_the_model_are_taken_in_either_spelling_of_their_layer() -> None:
    for layer in ("block_3", "block:3", "final"):
        assert HeadsProbe(MODEL, replace(heads(), layer=layer)).name == f"Some-Model {layer} last"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"target": "recall"}, "'recall'.*compression"),
        ({"context": "full"}, "'full'.*recent2"),
        ({"layer": "block_9"}, "'block_9'.*block_1.*block_4.*final"),
    ],
)
def test_heads_for_anything_else_are_refused_with_their_folder(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=f"my-heads.*{reason}.*pamer-lab train"):
        HeadsProbe(MODEL, replace(heads(), folder="my-heads", **change))
    with pytest.raises(InputError, match="pamer-lab train"):
        HeadsProbe(SimpleNamespace(name="Other", width=12, layers=4, fingerprint="f"), heads())  # type: ignore[arg-type]
