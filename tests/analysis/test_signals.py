"""Curves by depth, the paper's curve beside them, matching controls, and histograms that do not straddle the threshold."""

from dataclasses import replace

import numpy as np
import pytest

from pamer_lab.analysis.published import table
from pamer_lab.analysis.signals import all_curves, curve, histogram, matching_controls, published_curve, reference_rows
from pamer_lab.probes.margins import unpack
from pamer_lab.studies.study import Study, save_study
from pamer_lab.workspace import Workspace
from tests.analysis.making import control_study, layer_study


@pytest.fixture(scope="module")
def study() -> Study:
    return layer_study()


def test_a_curve_holds_the_rows_of_its_line_in_the_order_of_depth(study: Study) -> None:
    line = curve(study, "compression", "last")
    assert line["layer"].to_list() == ["block_1", "final"]
    assert line["depth"].to_list() == [1.0, 1.5]
    final = next(row for row in study.rows if row["name"] == "final last" and row["target"] == "compression")
    assert line.row(1, named=True)["mean"] == final["mean"]
    assert [line.row(1, named=True)["low"], line.row(1, named=True)["high"]] == final["interval"]
    shuffled = curve(study, "compression", "last", shuffled=True)
    assert shuffled.height == 2
    assert abs(float(shuffled["mean"].mean() or 0) - 0.5) < 0.2
    assert curve(study, "compression", "mean", shuffled=True).is_empty()
    assert all_curves(study, "logit_gap").height == 12


def test_the_published_curve_keeps_the_papers_numbers_and_is_placed_by_share_of_depth() -> None:
    points = published_curve("recall", "last", 30)
    assert [point["depth"] for point in points] == [3.75, 7.5, 15.0, 22.5, 30.0, 30.5]
    assert points[2]["mean"] == table("layerwise").row("Block 16", pooling="Last")["recall_auroc"]
    assert points[-1]["mean"] == 0.765  # the linear probe, not the faithful-hint reference in the last row


def test_controls_match_only_on_the_same_corpus_and_model(study: Study, workspace: Workspace) -> None:
    assert matching_controls(study, workspace) is None
    controls = control_study()
    save_study(workspace, replace(controls, model="another"))
    assert matching_controls(study, workspace) is None
    save_study(workspace, controls)
    found = matching_controls(study, workspace)
    assert found is not None
    means = [row["mean"] for row in reference_rows(found, "compression")]
    assert len(means) == 9
    assert means == sorted(means, reverse=True)


def test_a_histogram_counts_every_decision_and_no_bar_straddles_the_threshold(study: Study) -> None:
    seeds = unpack(study.rows[0])
    edges, positive, negative = histogram(seeds)
    assert positive.sum() == sum(len(seed.positive) for seed in seeds)
    assert negative.sum() == sum(len(seed.negative) for seed in seeds)
    assert np.abs(edges).min() == 0
