"""The answers below the layerwise charts: the layer that validation prefers, its interval, and the strongest control."""

from typing import Any

from pamer_lab.analysis.signals import preferred_layer, reference_rows, row_of
from pamer_lab.figures.text import layer_words
from pamer_lab.studies.decisions import TARGETS
from pamer_lab.studies.study import Study
from pamer_lab.ui.shared.text import in_code

CHANCE = 0.5
FINAL = "final"
"""The layer that the paper reads."""


def number(row: dict[str, Any], metric: str = "auroc") -> str:
    """`0.658 ± 0.035 (5)`."""
    found = row["metrics"][metric]
    return f"{found['mean']:.3f} ± {found['sd']:.3f} ({len(found['seeds'])})"


def preferred(study: Study, target: str) -> dict[str, Any] | None:
    """The last-token row of the layer that validation chose."""
    layer = preferred_layer(study, target)
    return row_of(study, target, layer, "last") if layer else None


def auroc_answer(study: Study, controls: Study | None, *, published: bool) -> str:
    """What validation chose for each target, its interval, the strongest control, and the final state."""
    sentences = []
    for target in TARGETS:
        row = preferred(study, target)
        if row is None:
            continue
        low, high = row["interval"] or (None, None)
        between = f", 95 % interval {low:.3f} to {high:.3f}" if low is not None else ""
        chance = "; the interval includes chance" if row["interval"] and row["interval"][0] <= CHANCE <= row["interval"][1] else ""
        rival = reference_rows(controls, target)[0] if controls else None
        against = f"; the strongest control, {rival['name'].casefold()}, has {rival['mean']:.3f}" if rival else ""
        last = _final(study, row, rival)
        sentences.append(
            f"{target.capitalize()}: validation selects {layer_words(row['layer'])} with {number(row)}{between}{chance}{against}{last}."
        )
    sizes = sorted({count for row in study.rows for count in row["test_n"]})
    asked = ", ".join(f"{target} {count:,}" for target, count in study.corpus["asked"].items())
    sentences.append(f"Measured with {in_code(study.model, 40)}, n = {asked} decisions; {sizes[0]:,} to {sizes[-1]:,} in a test split.")
    if published:
        sentences.append("Dotted lines with open marks are the paper's results for its own model and traces.")
    return " ".join(sentences)


def _final(study: Study, chosen: dict[str, Any], rival: dict[str, Any] | None) -> str:
    """What the final state shows if another layer was chosen, and whether it is below the strongest control."""
    row = row_of(study, chosen["target"], FINAL, "last")
    if row is None or chosen["layer"] == FINAL:
        return ""
    return f"; the final state has {number(row)}" + (", below that control" if rival and row["mean"] < rival["mean"] else "")


def gap_answer(study: Study) -> str:
    """The gaps at the preferred layers, with the warning that goes with them."""
    found = [
        f"{target.capitalize()} {number(row, 'logit_gap')} at {layer_words(row['layer'])}"
        for target in TARGETS
        if (row := preferred(study, target))
    ]
    return (
        f"{'; '.join(found)}. In logits, measured on the same test splits. Not a ranking metric: it grows with the probe's scale, so "
        "compare layers by AUROC. The paper reports no numbers for it."
    )
