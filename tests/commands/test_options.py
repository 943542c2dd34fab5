"""What the command line offers is what the library knows, and asking for help imports nothing heavy."""

import subprocess
import sys
from importlib import import_module

import pytest

from pamer_lab import prices
from pamer_lab.commands import live_options, option_groups, options, study_options
from pamer_lab.live.policy import LiveOptions
from pamer_lab.probes.split import SEEDS
from pamer_lab.studies.compact.registry import CAPS, parse_caps
from pamer_lab.studies.questions import FUTURES
from pamer_lab.studies.study import ALL
from pamer_lab.trajectory.recorded import HISTORIES
from pamer_lab.workspace import sessions

HEAVY = ["lancedb", "numpy", "polars", "pyarrow", "pydantic", "torch", "transformers"]


def test_repeated_values_are_those_of_the_library() -> None:
    assert (option_groups.HISTORIES, study_options.FUTURES, study_options.WORKSPACE) == (HISTORIES, FUTURES, ALL)
    assert [int(seed) for seed in study_options.SEEDS.split(",")] == list(SEEDS)
    assert parse_caps(study_options.CAPS) == CAPS
    assert option_groups.PRICES == prices.DEFAULT
    assert LiveOptions().deadline == live_options.DEADLINE
    assert (tuple(sessions.TOOLS), sessions.MOST) == (options.TOOLS, options.MOST)


@pytest.mark.parametrize("name", options.COMMANDS)
def test_every_command_has_a_module_that_runs_it(name: str) -> None:
    assert callable(import_module(f"pamer_lab.commands.{options.COMMANDS[name].module}").run)


def test_help_and_the_package_import_nothing_heavy() -> None:
    program = (
        "import sys, contextlib, io; import pamer_lab; from pamer_lab.cli import main\n"
        "from pamer_lab.commands.options import COMMANDS\n"
        "for words in (['--help'], *([name, '--help'] for name in COMMANDS)):\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(words)\n"
        f"print(*(set({HEAVY!r}) & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert found.stdout.split() == []


def test_lancedb_is_imported_only_when_a_table_is_opened(tmp_path: object) -> None:
    program = (
        "import sys; from pamer_lab.workspace import Workspace; from pamer_lab.blocks import EstimatedCounter, MessageTokens\n"
        "from pamer_lab.trajectory.values import Message, Trace\n"
        "w = Workspace(sys.argv[1]); assert w.trace_rows() == []; print('lancedb' in sys.modules)\n"
        "w.add_traces([Trace('t', 'q', 'made', (Message('user', 'a'), Message('assistant', 'b')))], MessageTokens(EstimatedCounter()))\n"
        "print('lancedb' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program, f"{tmp_path}/w"], capture_output=True, check=True, text=True)
    assert found.stdout.split() == ["False", "True"]
