"""`pamer-lab bench start`: what the program costs before it does anything, against a Python that does nothing.

Times are processor seconds of fresh processes, the shortest of several, in turns, so that other programs on the machine do not count.
"""

import resource
import subprocess
import sys
from typing import Any

HELP = "processor time of `--help`, of every `COMMAND --help` and of `import pamer_lab`, against `python -c pass`"
ROUNDS = 5
PASS = ("-c", "pass")
WAYS: dict[str, tuple[str, ...]] = {"pass": PASS, "help": ("-m", "pamer_lab.cli", "--help"), "import": ("-c", "import pamer_lab")}


def run() -> tuple[dict[str, float], dict[str, Any]]:
    from pamer_lab.commands.options import COMMANDS

    ways = WAYS | {f"{name} --help": ("-m", "pamer_lab.cli", name, "--help") for name in COMMANDS}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, words in ways.items():
            times[name].append(processor_seconds(words))
    best = {name: min(found) for name, found in times.items()}
    commands = {name: seconds / best["pass"] for name, seconds in best.items() if name not in WAYS}
    slowest = max(commands, key=lambda name: commands[name])
    ratios = {
        "help_vs_pass": best["help"] / best["pass"],
        "command_help_vs_pass": commands[slowest],
        "import_vs_pass": best["import"] / best["pass"],
    }
    return ratios, {"cpu_seconds": best, "slowest_command": slowest, "rounds": ROUNDS}


def processor_seconds(words: tuple[str, ...]) -> float:
    """User and system time of one fresh Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
