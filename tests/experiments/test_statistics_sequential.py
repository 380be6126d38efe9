"""[V2]: the probability of ever crossing, by dynamic programming over (K, R)."""

import numpy as np
import pytest

from experiments.statistics.sequential import anytime_p_values, confirm_log_e, refute_log_e


def crossing(log_e, rate, alpha, beta, most_trials):
    """Exact P(E reaches 1/alpha within most_trials) and the mean number of trials until then."""
    k = np.arange(most_trials + 1)
    alive = np.zeros(most_trials + 1)
    alive[0] = 1.0
    mean_trials = 0.0
    for r in range(1, most_trials + 1):
        mean_trials += alive.sum()
        alive[1:] = alive[1:] * (1 - rate) + alive[:-1] * rate
        alive[0] *= 1 - rate
        reached = log_e(k[: r + 1], r, beta=beta) >= -np.log(alpha)
        alive[: r + 1][reached] = 0.0
    return 1.0 - alive.sum(), mean_trials


@pytest.mark.parametrize("alpha", [0.1, 0.01])
@pytest.mark.parametrize(("beta", "rates"), [(0.05, [0.05, 0.055, 0.1]), (0.4, [0.4, 0.6])])
def test_false_claims_are_confirmed_with_probability_at_most_alpha(alpha, beta, rates):
    for rate in rates:
        probability, _ = crossing(confirm_log_e, rate, alpha, beta, 1000)
        assert probability <= alpha * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [0.1, 0.01])
@pytest.mark.parametrize(("beta", "rates"), [(0.05, [0.05, 0.045, 0.01]), (0.4, [0.4, 0.3])])
def test_true_claims_are_refuted_with_probability_at_most_alpha(alpha, beta, rates):
    for rate in rates:
        probability, _ = crossing(refute_log_e, rate, alpha, beta, 1000)
        assert probability <= alpha * (1 + 1e-9)


def test_validity_is_not_idle():
    # At the edge of the null the crossing probability is a sizeable part of alpha.
    assert crossing(confirm_log_e, 0.05, 0.1, 0.05, 1000)[0] > 0.01
    assert crossing(refute_log_e, 0.05, 0.1, 0.05, 1000)[0] > 0.01


def test_mean_number_of_trials_at_half_the_claimed_rate():
    probability, mean_trials = crossing(confirm_log_e, 0.025, 1e-4, 0.05, 6000)
    assert probability > 1 - 1e-5
    assert mean_trials == pytest.approx(1235, abs=5)


def test_a_planted_false_claim_is_refuted():
    probability, mean_trials = crossing(refute_log_e, 0.1, 1e-4, 0.05, 2000)
    assert probability > 0.999
    assert mean_trials < 600


@pytest.mark.parametrize("beta", [0.01, 0.05, 0.3, 0.6, 0.9])
def test_one_step_expectation_is_one_at_beta(beta):
    """At rate beta both processes are martingales: E[E_{R+1} | K, R] = E_R."""
    for log_e in (confirm_log_e, refute_log_e):
        for k, r in [(0, 0), (0, 5), (3, 10), (10, 10)]:
            now = np.exp(log_e(k, r, beta=beta))
            up, down = np.exp(log_e([k + 1, k], r + 1, beta=beta))
            assert beta * up + (1 - beta) * down == pytest.approx(now, rel=1e-12)


def test_closed_form_of_the_confirming_process():
    beta, k, r = 0.05, np.array([0, 1, 7]), 300
    direct = 0.5 * (1 - beta) ** -r * (k == 0) + 0.5 * 0.5**k * ((1 - beta / 2) / (1 - beta)) ** (
        r - k
    )
    np.testing.assert_allclose(np.exp(confirm_log_e(k, r, beta=beta)), direct, rtol=1e-12)


@pytest.mark.parametrize(("beta", "rates"), [(0.05, [0.075, 0.1, 0.2]), (0.5, [0.75, 0.75, 0.75])])
def test_closed_form_of_the_refuting_process(beta, rates):
    k, r = np.array([0, 9, 40]), 60
    direct = [(q / beta) ** k * ((1 - q) / (1 - beta)) ** (r - k) for q in rates]
    np.testing.assert_allclose(
        np.exp(refute_log_e(k, r, beta=beta)), np.mean(direct, axis=0), rtol=1e-12
    )


def test_large_counts_stay_finite():
    assert np.isfinite(confirm_log_e(10**8, 10**9, beta=0.05))
    assert np.isfinite(refute_log_e(10**9, 10**9, beta=0.999))
    assert refute_log_e(10**8, 10**9, beta=0.05) > 1e6


def test_decisions_survive_further_trials():
    exceeds = np.concatenate([np.zeros(300, bool), np.ones(100, bool)])
    early, _ = anytime_p_values(exceeds[:300], beta=0.05)
    late, _ = anytime_p_values(exceeds, beta=0.05)
    assert late <= early < 1e-4
    # The last look alone would have lost it.
    assert confirm_log_e(100, 400, beta=0.05) < 0
    assert anytime_p_values(exceeds[:0], beta=0.05) == (1.0, 1.0)
