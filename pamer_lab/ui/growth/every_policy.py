"""All policies on the Context growth page: what each needs, how faithful it is, and one button that compares all that can run."""

from collections.abc import Sequence

import streamlit as st

from pamer_lab.analysis.growth import missing_runs
from pamer_lab.counts import counted
from pamer_lab.factory import Factory
from pamer_lab.policies.availability import refused, runnable
from pamer_lab.policies.interface import FAMILIES
from pamer_lab.policies.registry import describe_policies, describe_presets
from pamer_lab.reviewer_mode import reviewer_mode
from pamer_lab.runs.batch import BatchOptions
from pamer_lab.ui.growth.view import start
from pamer_lab.ui.shared.loaders import workspace
from pamer_lab.ui.shared.run_form import estimated
from pamer_lab.ui.shared.runs import all_runs, background
from pamer_lab.ui.shared.widgets import table_height

BASES = {"code": "its code", "paper": "its paper", "note": "third-party notes", "inferred": "inference"}


def every_policy(trace_ids: Sequence[str], chosen: Sequence[str], factory: Factory) -> None:
    """All policies in a table, and the button; nothing is computed while the panel is closed."""
    panel = st.expander("Compare more policies", key="every-policy", on_change="rerun")
    if not panel.open:
        return
    with panel:
        can, cannot = runnable(factory)
        gone = refused(can, trace_ids, workspace())
        _table(cannot | gone)
        if not reviewer_mode() and background().current is None:
            _compare(trace_ids, chosen, [name for name in can if name not in gone], factory)


def _table(reasons: dict[str, str]) -> None:
    why = {name.partition(":")[0]: reason for name, reason in reasons.items()}
    lines = [
        {
            "Family": title,
            "Policy": entry["name"],
            "Runs here": why.get(entry["name"], "yes"),
            "Needs": ", ".join(entry["needs"]) or "nothing",
            "What it does": entry["description"],
            "Based on": ", ".join(dict.fromkeys(BASES[fact["basis"]] for fact in entry["facts"])),
            "Differs from its source": "; ".join(entry["deviations"]),
        }
        for family, title in FAMILIES.items()
        for entry in describe_policies()
        if entry["family"] == family
    ]
    st.dataframe(lines, hide_index=True, height=table_height(len(lines), most=420))
    programs = ", ".join(f"`{entry['name']}` = `{entry['policy']}`" for entry in describe_presets())
    st.caption(f"Presets of agent programs, which you can type into the policy field: {programs}.")


def _compare(trace_ids: Sequence[str], chosen: Sequence[str], names: Sequence[str], factory: Factory) -> None:
    missing = missing_runs(all_runs(factory.profile.name, trace_ids), list(names), list(trace_ids))
    found = f"{counted(len(names), 'policy', 'policies')} can run on {counted(len(trace_ids), 'trace')}"
    with st.container(horizontal=True, vertical_alignment="center"):
        if missing:
            takes, time = estimated(missing, factory)
            loaded = f"loads {' and '.join(takes.models)}" if takes.models else "loads no model"
            st.markdown(f"{found}; {counted(takes.runs, 'run')} missing. This {loaded} and takes {time}.", width="stretch")
        else:
            st.markdown(f"{found}; all runs are finished.", width="stretch")
        st.button(
            "Compare all that can run here",
            key="compare-all",
            type="primary",
            icon=":material/compare_arrows:",
            help="Same as `pamer-lab replay TRACES --policy all`; `--estimate` prints the time first.",
            on_click=start,
            args=(list(trace_ids), list(names), BatchOptions(factory.profile.name, processes=2, heads=factory.heads_text), chosen),
        )
