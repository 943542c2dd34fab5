"""The paper's closed forms: Appendix A.3 and B.2."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pamer_lab.probes.readout import logit, sigmoid
from pamer_lab.probes.training import class_weight, soft_target, weighted_bce
from tests.probes.theory import bce, kd_loss, kd_optimum, weighted_inverse, weighted_optimum

rates = st.floats(0.01, 0.99)
weights = st.floats(0.1, 20.0)
logits = st.floats(-30.0, 30.0)


@given(rates, weights)
def test_the_weighted_optimum_minimises_the_risk_and_shifts_the_log_odds_by_log_rho(eta: float, rho: float) -> None:
    best = weighted_optimum(np.array(eta), rho)
    grid = np.linspace(1e-4, 1 - 1e-4, 4001)
    risk = eta * weighted_bce(logit(grid), np.array(1.0), rho) + (1 - eta) * weighted_bce(logit(grid), np.array(0.0), rho)
    assert abs(grid[risk.argmin()] - best) < 1e-3
    assert np.isclose(logit(best), logit(eta) + np.log(rho))


@given(rates, weights)
def test_the_inverse_gives_the_rate_back(eta: float, rho: float) -> None:
    assert np.isclose(weighted_inverse(weighted_optimum(np.array(eta), rho), rho), eta)


@given(logits, st.sampled_from([0.0, 1.0]), rates, weights, st.floats(0.0, 3.0))
def test_distillation_is_one_soft_label_bce(z: float, y: float, q: float, rho: float, weight: float) -> None:
    a, c = soft_target(np.array(y), np.array(q), rho, weight)
    one = a * bce(np.array(z), c / a)
    assert np.isclose(kd_loss(np.array(z), np.array(y), np.array(q), rho, weight), one, rtol=1e-9, atol=1e-9)


@given(st.floats(-15.0, 15.0), st.sampled_from([0.0, 1.0]), rates, weights)
def test_the_gradients_are_those_of_the_paper(z: float, y: float, q: float, rho: float) -> None:
    import torch

    leaf = torch.tensor(z, dtype=torch.float64, requires_grad=True)
    label = torch.nn.functional.binary_cross_entropy_with_logits(
        leaf, torch.tensor(y, dtype=torch.float64), pos_weight=torch.tensor(rho, dtype=torch.float64)
    )
    teacher = torch.nn.functional.binary_cross_entropy_with_logits(leaf, torch.tensor(q, dtype=torch.float64))
    (label + 0.5 * teacher).backward()
    assert np.isclose(weighted_bce(np.array(z), np.array(y), rho), label.item(), atol=1e-9)
    a, c = soft_target(np.array(y), np.array(q), rho)
    assert leaf.grad is not None
    assert np.isclose(leaf.grad.item(), a * sigmoid(np.array(z)) - c, atol=1e-9)
    assert np.isclose(a * sigmoid(np.array(z)) - c, (rho * y + 1 - y + 0.5) * sigmoid(np.array(z)) - rho * y - 0.5 * q)


@given(rates, rates, weights)
def test_the_students_optimum_minimises_the_conditional_risk(eta: float, mu: float, rho: float) -> None:
    best = kd_optimum(np.array(eta), np.array(mu), rho)
    grid = np.linspace(1e-4, 1 - 1e-4, 4001)
    z, teacher = logit(grid), np.array(mu)
    risk = eta * weighted_bce(z, np.array(1.0), rho) + (1 - eta) * weighted_bce(z, np.array(0.0), rho) + 0.5 * bce(z, teacher)
    assert abs(grid[risk.argmin()] - best) < 1e-3


@given(rates, rates, rates, weights, st.floats(0.0, 3.0))
def test_the_excess_risk_is_the_kl_divergence_times_the_loss_weight(p: float, eta: float, mu: float, rho: float, weight: float) -> None:
    def risk(probability: float) -> float:
        z = logit(probability)
        return float(
            eta * kd_loss(z, np.array(1.0), np.array(mu), rho, weight) + (1 - eta) * kd_loss(z, np.array(0.0), np.array(mu), rho, weight)
        )

    best = float(kd_optimum(np.array(eta), np.array(mu), rho, weight))
    divergence = best * np.log(best / p) + (1 - best) * np.log((1 - best) / (1 - p))
    total = rho * eta + weight * mu + 1 - eta + weight * (1 - mu)  # A + B
    assert np.isclose(risk(p) - risk(best), total * divergence, rtol=1e-6, atol=1e-9)


def test_no_form_overflows_at_extreme_logits() -> None:
    z = np.array([-1e4, -800.0, 0.0, 800.0, 1e4])
    with np.errstate(over="raise", invalid="raise"):
        for y in (0.0, 1.0):
            assert np.isfinite(weighted_bce(z, np.array(y), 3.0)).all()
    assert weighted_bce(np.array(800.0), np.array(0.0), 3.0) == 800.0


def test_the_class_weight_is_negatives_per_positive() -> None:
    assert class_weight(np.array([1, 0, 0, 0])) == 3.0
