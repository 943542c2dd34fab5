"""What the trade-off chart says in a sentence: the best compact condition for each target against the full context."""

from pamer_lab.analysis.compact import expanded_table
from pamer_lab.probes.decisions import TARGETS
from pamer_lab.probes.study import Study
from pamer_lab.ui.contexts.tables import FULL, best_line, cell_text
from pamer_lab.ui.shared.text import in_code


def tradeoff_answer(study: Study, *, published: bool) -> str:
    """The best compact condition of each target with its tokens; n; tokenizer."""
    lines = expanded_table(study)
    full = next((line for line in lines if line["condition"] == "full"), None)
    sentences = []
    for target in TARGETS:
        key = f"{target}_auroc"
        best = best_line(lines, key)
        if best is None:
            continue
        line = lines[best]
        against = f"; {FULL} has {cell_text(full, key)}" if full and full[key] is not None else ""
        asked = study.corpus["asked"][target]
        sentences.append(
            f"{target.capitalize()} (n = {asked:,}): best is {line['label']} with {cell_text(line, key)} at {line['tokens_pct']:.1f} % "
            f"of the tokens{against}."
        )
    counted_by = study.settings.get("tokenizer", study.model)
    sentences.append(
        f"Measured with {in_code(study.model, 40)} at {study.notes.get('layer', 'one layer')}, tokens by {in_code(str(counted_by), 40)}; "
        "token share counts text only, not stored states."
    )
    if published:
        sentences.append("Open marks are the paper's, for another model and other traces.")
    return " ".join(sentences)
