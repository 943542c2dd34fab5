"""Writes `docs/policies.md` from the policy classes: `python docs/policies.py`. A test compares the page with this."""

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from pamer_lab.policies.interface import FAMILIES  # noqa: E402
from pamer_lab.policies.registry import describe_policies, describe_presets  # noqa: E402

PAGE = PROJECT / "docs" / "policies.md"
HEAD = """# Policies

This page is written by `python docs/policies.py` from the classes in `pamer_lab/policies/`. `pamer-lab policies` prints the same and
which of them can run here; `pamer-lab replay TRACE --policy all` runs those. Add `--estimate` to see first how long that takes.

Four things apply to every result:

- **Actions are fixed.** A method that made the agent search again in the paper (a window of five blocks: +56 % tokens) shows fewer tokens
  here.
- **Decisions that an agent makes itself** (SelfCompact, Self-GC, reading SAM's pages) are made by a separate model or rule, which
  the run names.
- **No policy sees the future.** A test shuffles what comes after a turn and gets the same decision.
- **If a summary fails**, the complete request of that turn is sent as recorded, and the next turn continues from the last summary. A plan,
  an edit or a page that fails changes nothing.

Results on sample and real traces: `docs/policy-results.md`.

"Based on" says where a fact comes from: the method's own code, its paper, somebody's note about it, or our own inference.
"""


def written() -> str:
    """The page."""
    entries = describe_policies()
    parts = [HEAD]
    for family, title in FAMILIES.items():
        parts.append(f"\n## {title}\n")
        for entry in entries:
            if entry["family"] == family:
                parts.append(_entry(entry))
    return "".join(parts) + _presets()


PRESETS_HEAD = """
## Agent programs by name

Many programs and libraries use one of these policies with certain parameters. You can give their names instead
(`--policy base,codex,cline`, or `programs` for all of them); the run is stored under the policy's own name. Only the rule is that of the
program: summaries are written as for all policies here, and the differences listed under the policy apply.

| name | policy | known from |
| --- | --- | --- |
"""
PRESETS_FOOT = """
Libraries without default settings have no name here, since users choose the settings. LangChain's summarisation middleware keeps 20
messages after a trigger that the user must set (`auto-compact:T:tail=10`). Google ADK's `token_threshold` with `event_retention_size` is
`auto-compact:T:tail=K`; its `compaction_interval` counts user turns, of which most recorded runs have only one. AutoGen's
`BufferedChatCompletionContext` keeps the newest messages (`sliding-window:K`). Cursor's code is not public.
"""


def _presets() -> str:
    lines = [f"| `{entry['name']}` | `{entry['policy']}` | {entry['basis']}: {entry['source']} |" for entry in describe_presets()]
    return PRESETS_HEAD + "\n".join(lines) + "\n" + PRESETS_FOOT


def _entry(entry: dict) -> str:
    lines = [
        f"\n### `{entry['name']}`\n",
        f"{entry['description'][0].upper()}{entry['description'][1:]}. Needs: {', '.join(entry['needs']) or 'nothing'}.\n",
    ]
    if entry["parameters"]:
        lines.append("| parameter | default | takes |\n| --- | --- | --- |")
        lines += [f"| `{name}` | {value} | {entry['takes'][name]} |" for name, value in entry["parameters"].items()]
        lines.append("")
    if not entry["acts_live"]:
        lines.append("- Replay only: it cannot act on a running agent.")
    lines += [f"- Source: {text}" for text in entry["sources"]]
    lines += [f"- Based on ({fact['basis']}): {fact['text']}" for fact in entry["facts"]]
    lines += [f"- Differs: {text}" for text in entry["deviations"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
