"""`pamer-lab whatif RUN --threshold ... --vote ...`: decisions under other settings, from stored logits; no model call."""

import argparse
from typing import Any

from pamer_lab.counts import counted
from pamer_lab.errors import InputError
from pamer_lab.prices import find_prices
from pamer_lab.runs.store import RunStore
from pamer_lab.runs.whatif import Changes, WhatIfRun
from pamer_lab.workspace import Workspace


def run(args: argparse.Namespace) -> dict[str, Any]:
    for name in ("vote", "min_candidate", "retained", "horizon"):
        value = getattr(args, name)
        if value is not None and value < 0:
            raise InputError(f"--{name.replace('_', '-')} must be 0 or more, not {value}")
    workspace = Workspace()
    prices = find_prices(args.prices, workspace.path) if args.prices else None
    rule = (args.vote, args.min_candidate, args.retained, args.horizon, prices)
    changes = Changes(_thresholds(args.threshold), args.threshold_scale, *rule)
    laid_out = WhatIfRun(RunStore(workspace).run(args.run))
    matches, of = laid_out.verified
    return laid_out.ask(changes).as_json() | {"verified": {"matches": matches, "of": of}}


def _thresholds(text: str) -> tuple[float, ...] | None:
    if not text:
        return None
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(f"--threshold takes probabilities separated by commas, not {text!r}") from error
    if not all(0 <= value <= 1 for value in values):
        raise InputError(f"--threshold takes probabilities from 0 to 1, not {text!r}")
    return values


def show(result: dict[str, Any]) -> None:
    verified = result["verified"]
    print(f"verified {verified['matches']} of {verified['of']} stored decisions")
    for t in result["changed_turns"]:
        turn = result["turns"][t]
        print(f"turn {t}: {turn['stored_action']} -> {turn['action']}, {turn['active_tokens']:,} tokens ({turn['tokens_kind']})")
    print(
        f"changed: {counted(len(result['changed_turns']), 'turn')}; "
        f"main input {result['main_input']:,} tokens, peak {result['peak_active']:,}"
    )
    for note in result["notes"]:
        print(note)
