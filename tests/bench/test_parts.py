"""`--part` runs some parts of a bench and no others."""

import argparse
from typing import Any

import pytest

from pamer_lab.bench import replay, scale, start
from pamer_lab.commands import bench
from pamer_lab.errors import InputError, UnknownNameError


def asked(name: str, *parts: str) -> dict[str, Any]:
    return bench.run(argparse.Namespace(name=name, paths=[], count=None, part=[*parts]))


@pytest.mark.parametrize("module", [replay, scale, start])
def test_only_the_parts_that_were_named_are_run(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {name: lambda *_, name=name: ({name: 1.0}, {f"about {name}": 2}) for name in module.PARTS}
    monkeypatch.setattr(module, "PARTS", made)
    name = module.__name__.rpartition(".")[2]
    first, *_, last = made
    assert asked(name, last)["ratios"] == {last: 1.0}
    assert asked(name, last, first)["ratios"] == {first: 1.0, last: 1.0}
    assert asked(name)["ratios"] == dict.fromkeys(made, 1.0)


def test_an_unknown_part_and_a_bench_without_parts_are_refused() -> None:
    with pytest.raises(UnknownNameError):
        asked("replay", "forwards")
    with pytest.raises(InputError):
        asked("blocks", "forward")
