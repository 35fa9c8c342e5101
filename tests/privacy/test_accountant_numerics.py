"""The pieces of the accountant against slow twins: error bounds that hold, with room to spare."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from oracles import accounting as oracle
from trellis.privacy.accounting import Composition, Coordinates
from trellis.privacy.accounting.distributions.lattice import gaussian_law
from trellis.privacy.accounting.distributions.losses import UNIT, LossGrid, LossTable
from trellis.privacy.accounting.distributions.theta import log_characteristic, log_normaliser_ratio
from trellis.privacy.mechanisms import DiscreteGaussian

DIGITS = 40


def centred_weights(centre: float, sigma_squared: float) -> dict[int, mpmath.mpf]:
    reach = int(abs(centre) + 15 * sigma_squared**0.5 + 15)
    return {
        x: mp.exp(-((x - mp.mpf(centre)) ** 2) / (2 * mp.mpf(sigma_squared)))
        for x in range(-reach, reach + 1)
    }


@settings(max_examples=300, deadline=None)
@given(
    sigma_squared=st.sampled_from([0.01, 0.2, 0.4999, 0.5, 0.7, 1.2, 3.0, 50.0]),
    centre=st.integers(0, 2**11).map(lambda k: k / 2**9),
    turns=st.integers(-(2**9), 2**9).map(lambda k: k / 2**10),
    power=st.sampled_from([1, 10, 1000]),
)
def test_characteristic_function(sigma_squared, centre, turns, power):
    found = log_characteristic(np.array([turns]), centre, sigma_squared)
    with mp.workdps(DIGITS):
        weights = centred_weights(centre, sigma_squared)
        angle = 2 * mp.pi * mp.mpf(turns)
        total = mp.fsum(weights.values())
        truth = mp.fsum(w * mp.expj(angle * x) for x, w in weights.items()) / total
        computed = mp.exp(power * mp.mpmathify(complex(found.log[0])))
        error = abs(computed - truth**power)
        bound = power * UNIT * found.units[0] * mp.exp(power * mp.mpf(found.log_size[0]))
        assert error <= bound + 1e-30


@pytest.mark.parametrize("sigma_squared", [0.001, 0.3, 0.5, 2.0])
@pytest.mark.parametrize("centre", [0.0, 0.25, 0.5, 3.375])
def test_normaliser_ratio(sigma_squared, centre):
    with mp.workdps(DIGITS):
        at_zero = mp.fsum(centred_weights(0.0, sigma_squared).values())
        truth = mp.log(at_zero / mp.fsum(centred_weights(centre, sigma_squared).values()))
        found = log_normaliser_ratio(centre, sigma_squared)
        assert abs(found - truth) <= UNIT * (32 + 10 * truth)


@pytest.mark.parametrize(
    "parts",
    [
        [(5, 10, 1)],
        [("0.05", 8, 1)],  # twelve tilts
        [("0.3", 12, 2)],
        [("1/3", 3, 1), ("1/2", 4, 3)],
        [(1, 40, 2)],
    ],
)
def test_gaussian_law_is_enclosed_everywhere(parts):
    composition = Composition.of(Coordinates(DiscreteGaussian(s), n, v) for s, n, v in parts)
    truth = oracle.loss_law(composition)
    law = gaussian_law(composition.gaussian)
    reach = law.reach(90.0)
    lower, upper = law.masses(-reach, reach)
    for k, s in enumerate(range(-reach, reach + 1)):
        position = law.step * (s + Fraction(law.period, 2)) / truth.step
        mass = mp.ldexp(truth.masses.get(int(position), 0), -oracle.BITS)
        assert lower[k] <= mass + 1e-65
        assert mass <= upper[k]
        assert mass < 1e-30 or upper[k] - lower[k] <= 1e-10 * upper[k]


@pytest.mark.parametrize("log2_n", [4, 10, 16])
def test_fourier_transform_keeps_its_bound(log2_n):
    """Against 64-bit mantissas; the bound of 16 u log2(n) is far from reached."""
    from scipy.fft import irfft

    n = 2**log2_n
    rng = np.random.default_rng(log2_n)
    spectrum = rng.normal(size=n // 2 + 1) * np.exp(-rng.uniform(0, 30, n // 2 + 1))
    exact = irfft(spectrum.astype(np.clongdouble), n)
    error = np.linalg.norm((np.fft.irfft(spectrum, n) - exact).astype(float))
    assert error <= 4 * UNIT * log2_n * np.linalg.norm(exact.astype(float))


@settings(max_examples=100, deadline=None)
@given(
    gaps=st.lists(st.floats(1e-6, 60), min_size=1, max_size=30),
    weights=st.lists(st.floats(0, 1), min_size=30, max_size=30),
    epsilon=st.floats(0, 200),
)
def test_table_sums_without_cancelling(gaps, weights, epsilon):
    losses = np.cumsum(gaps)
    masses = np.array(weights[: len(gaps)]) / 60 * np.exp(-losses / 2)
    table = LossTable(LossGrid(losses), masses, infinite_mass=1e-40)
    with mp.workdps(DIGITS):
        truth = mp.mpf(1e-40) + mp.fsum(
            mp.mpf(p) * -mp.expm1(mp.mpf(epsilon) - mp.mpf(loss))
            for p, loss in zip(masses, losses, strict=True)
            if loss > epsilon
        )
        found = float(table.delta(np.array([epsilon]))[0])
        assert abs(found - truth) <= table.rounding * truth


@settings(max_examples=100, deadline=None)
@given(
    gaps=st.lists(st.floats(1e-3, 3), min_size=1, max_size=30),
    exponent=st.floats(-30, 0),
)
def test_table_inverts_itself(gaps, exponent):
    losses = np.cumsum(gaps)
    table = LossTable(LossGrid(losses), np.exp(-losses) / 100)
    delta = 10.0**exponent
    epsilon = table.epsilon(np.array([delta]))
    found = float(table.delta(epsilon)[0])
    assert found == pytest.approx(delta, rel=1e-9) if epsilon[0] > 0 else found <= delta
