import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import InvalidInput, Profile
from theory.zipf import (
    ZipfCertificate,
    best_certificate,
    log_tail_bound,
    log_zipf_constant,
    max_set_size_bound,
    zipf_certificate,
    zipf_tail_bound,
    zipf_tail_pairs,
)

vectors = st.lists(st.integers(1, 60), min_size=1, max_size=25)


def brute_log_constant(frequencies, s):
    counts = np.sort(frequencies)[::-1]
    logs = np.log(counts / counts.sum()) + s * np.log(np.arange(1, counts.size + 1))
    return max(0.0, logs.max())


@given(vectors, st.floats(0.05, 300))
def test_constant_is_the_envelope(frequencies, s):
    brute = brute_log_constant(frequencies, s)
    assert log_zipf_constant(frequencies, s) == pytest.approx(brute, rel=1e-12, abs=1e-12)


def test_constant_over_arrays_and_classes():
    s = np.array([0.5, 1.0, 1.5, 40.0, 1e6])
    frequencies = [7] * 3 + [2] * 50 + [1] * 400
    logs = log_zipf_constant(frequencies, s)
    np.testing.assert_allclose(logs, [brute_log_constant(frequencies, x) for x in s], rtol=1e-13)
    assert np.isfinite(logs).all() and np.isinf(zipf_certificate(frequencies, 1e6).constant)
    profile = Profile.from_frequencies(
        [7, 2, 1], multiplicity=[3, 50, 400], max_set_size=9, max_items_per_user=2
    )
    np.testing.assert_array_equal(log_zipf_constant(profile, s), logs)
    # One item, and any data at s <= 1: rank times frequency is at most N, so C = 1.
    assert log_zipf_constant([12], 9.0) == 0.0
    assert log_zipf_constant(frequencies, 1.0) == 0.0


def test_the_envelope_is_not_a_regression():
    """On noisy Zipf(2) data a regression line is crossed by the data; the certificate is not."""
    rng = np.random.default_rng(1)
    frequencies = np.sort(np.bincount(rng.zipf(2.0, 5000))[1:])[::-1]
    frequencies = frequencies[frequencies > 0]
    ranks = np.arange(1, frequencies.size + 1)
    slope, height = np.polyfit(np.log(ranks), np.log(frequencies / frequencies.sum()), 1)
    assert np.any(np.log(frequencies / frequencies.sum()) > height + slope * np.log(ranks) + 0.1)
    log_constant = log_zipf_constant(frequencies, -slope)
    assert log_constant > height + 0.1
    logs = np.log(frequencies / frequencies.sum())
    assert np.all(logs <= log_constant + slope * np.log(ranks) + 1e-12)


def test_certificates_are_checked():
    profile = Profile.from_frequencies([1, 1], max_set_size=1, max_items_per_user=1)
    assert ZipfCertificate(np.log(64.0), 7.0).holds_for(profile)
    assert not ZipfCertificate(np.log(63.9), 7.0).holds_for(profile)
    assert not ZipfCertificate(np.log([64.0, 63.0]), np.array([7.0, 7.0])).holds_for(profile)
    with pytest.raises(InvalidInput, match="s = 0.0: must be a finite number above 0"):
        log_zipf_constant([1], 0.0)
    with pytest.raises(InvalidInput, match="s = 1.0: must be a finite number above 1"):
        zipf_tail_bound(1, ZipfCertificate(0.0, 1.0), num_pairs=3)
    with pytest.raises(InvalidInput, match="tau = -1: must be at least 0"):
        zipf_tail_bound(-1, ZipfCertificate(0.0, 2.0), num_pairs=3)


def test_tail_chain_on_thousands_of_vectors():
    """Exact tail <= exact sum <= floor form <= closed form, every vector, s and tau."""
    rng = np.random.default_rng(7)
    cases = sharper = 0
    for _ in range(400):
        size = int(rng.integers(1, 14))
        frequencies = rng.integers(1, int(rng.integers(2, 40)), size)
        if rng.random() < 0.3:
            frequencies[:] = frequencies[0]
        profile = Profile.from_frequencies(frequencies, max_set_size=1, max_items_per_user=1)
        levels = np.array([0.0, 0.5, 1.0, 1.7, 2.0, 3.0, 7.9, 20.0, 50.0])
        tail = profile.tail(levels)
        for s in (1.01, 1.3, 2.0, 3.5, 10.0, 80.0):
            certificate = zipf_certificate(profile, s)
            size_args = {"num_pairs": profile.num_pairs, "num_items": profile.num_items}
            chain = [
                zipf_tail_bound(levels, certificate, form=form, **size_args)
                for form in ("sum", "floor", "closed")
            ]
            assert np.all(tail <= chain[0])
            assert np.all(chain[0] <= chain[1] * (1 + 1e-12))
            assert np.all(chain[1] <= chain[2])
            cases += levels.size
            sharper += int(np.sum(chain[0] < 0.8 * chain[1]))
    assert cases > 20_000
    assert sharper > 2000


@given(st.integers(1, 500), st.integers(1, 4), st.integers(2, 5), st.integers(1, 300))
@settings(deadline=None)
def test_exact_sum_by_counting(level, constant, s, pairs):
    """Counted by value and by rank it is the plain sum, in exact arithmetic."""
    certificate = ZipfCertificate(float(np.log(constant)), float(s))
    for items in (1, 3, pairs):
        caps = (int(Fraction(constant * pairs, r**s)) for r in range(1, min(items, pairs) + 1))
        plain = sum(min(level, cap) for cap in caps)
        assert zipf_tail_pairs(level, certificate, pairs, items) == plain


def test_exact_sum_of_huge_data_is_fast_and_below_the_closed_form():
    start = time.perf_counter()
    for s in (1.2, 1.5, 3.0):
        for tau in (1, 1000, 10**8):
            sizes = {"num_pairs": 10**12, "num_items": 10**12}
            exact = zipf_tail_bound(tau, ZipfCertificate(0.5, s), form="sum", **sizes)
            closed = zipf_tail_bound(tau, ZipfCertificate(0.5, s), num_pairs=10**12)
            assert 0.1 * closed < exact <= closed
    assert time.perf_counter() - start < 20


@given(vectors, st.floats(0.3, 80))
@settings(deadline=None)
def test_best_certificate_beats_a_grid(frequencies, tau):
    pairs = sum(frequencies)
    best = best_certificate(frequencies, tau)
    grid = 1 + np.geomspace(1e-6, 1e5, 3000)
    values = log_tail_bound(tau, zipf_certificate(frequencies, grid), pairs)
    assert log_tail_bound(tau, best, pairs) <= values.min() + 1e-9
    assert best.log_constant == log_zipf_constant(frequencies, best.s)


def test_best_certificate_over_an_array_of_tau():
    # Steeper from rank 100 on: small tau call for a larger s.
    frequencies = [10**6 // r if r < 100 else 10**10 // r**3 for r in range(1, 2001)]
    tau = np.array([0.0, 1.0, 20.0, 300.0, 5e4])
    best = best_certificate(frequencies, tau)
    for index, value in enumerate(tau):
        alone = best_certificate(frequencies, value)
        assert (alone.s, alone.log_constant) == (best.s[index], best.log_constant[index])
    assert best.s[2] > best.s[4] > 1


@given(vectors, st.floats(0.2, 60))
def test_number_of_items_is_bounded(frequencies, s):
    certificate = ZipfCertificate(log_zipf_constant(frequencies, s), s)
    assert len(frequencies) <= max_set_size_bound(certificate, sum(frequencies))


def test_number_of_items_bound_is_attained_by_singletons():
    for items in (2, 3, 10, 1000, 123_457):
        for s in (1.1, 2.0, 17.3):
            certificate = zipf_certificate(
                Profile.from_frequencies(
                    [1], multiplicity=[items], max_set_size=1, max_items_per_user=1
                ),
                s,
            )
            bound = max_set_size_bound(certificate, items)
            assert items <= bound <= items * (1 + 1e-12)
