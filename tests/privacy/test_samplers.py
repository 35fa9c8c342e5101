import threading
import tracemalloc
from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy import stats

from oracles.samplers import (
    TextbookSampler,
    accepted_by_blocks,
    chi_squared_p_value,
    cumulative,
    gaussian,
    laplace,
    sample_by_inversion,
    weights,
)
from seeded_bits import ScriptedBits, SeededBits
from trellis.privacy import table_sampler, thresholds
from trellis.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from trellis.privacy.rejection_sampler import (
    accepted_proposals,
    block_law,
    block_width,
    sample_by_rejection,
)
from trellis.privacy.table_sampler import sample_by_table, threshold_table
from trellis.privacy.thresholds import cumulative_thresholds, floor_of_exp

ALL_ONES = 2**64 - 1

parameters = st.fractions(Fraction(1, 50), 25, max_denominator=1000)
decays = st.one_of(st.builds(gaussian, parameters), st.builds(laplace, parameters))
small_laws = pytest.mark.parametrize(
    "decay",
    [gaussian("0.05"), gaussian("1/2"), gaussian(5), gaussian("68.49"), laplace("1/3"), laplace(4)],
    ids=str,
)


def exact_floors(decay, sides, bits, n):
    return tuple(int(2**bits * p) for p in cumulative(decay, sides)[:n])


# Thresholds


@given(decay=decays, sides=st.sampled_from([1, 2]), bits=st.integers(1, 130))
@settings(max_examples=60, deadline=None)
def test_thresholds_are_the_exact_floors(decay, sides, bits):
    found = cumulative_thresholds(decay, sides, bits)
    assert found == exact_floors(decay, sides, bits, len(found))
    assert found[-1] == 2**bits - 1
    assert 2**bits - 1 not in found[:-1]


def test_thresholds_are_the_exact_floors_for_a_wide_law():
    found = cumulative_thresholds(gaussian(10**6), 2, 63)
    assert found == exact_floors(gaussian(10**6), 2, 63, len(found))


@pytest.mark.parametrize("decay", [gaussian(10**6), laplace(300), gaussian("123456.789")], ids=str)
def test_longer_thresholds_begin_like_shorter_ones(decay):
    short, long = (cumulative_thresholds(decay, 2, bits) for bits in (63, 191))
    assert short == tuple(t >> 128 for t in long[: len(short)])


@small_laws
def test_precision_grows_until_the_floors_are_proved(decay, monkeypatch):
    expected = cumulative_thresholds(decay, 2, 63)
    expected_exp = floor_of_exp(decay.exponent(1), 63)
    tries = []
    original = thresholds._agreed_floors
    monkeypatch.setattr(thresholds, "_GUARD_BITS", 1)
    monkeypatch.setattr(
        thresholds, "_agreed_floors", lambda *a: tries.append(original(*a)) or tries[-1]
    )
    assert cumulative_thresholds.__wrapped__(decay, 2, 63) == expected
    assert tries[0] is None
    assert floor_of_exp(decay.exponent(1), 63) == expected_exp


def test_law_of_almost_no_noise():
    tiny = gaussian("1e-300")
    assert cumulative_thresholds(tiny, 2, 63) == (2**63 - 1,)
    assert not DiscreteGaussian("1e-300").sample(1000, SeededBits(1)).any()


@given(exponent=st.fractions(0, 400), bits=st.integers(1, 300))
def test_floor_of_exp(exponent, bits):
    with mp.workprec(1000):
        exact = int(
            mp.floor(mp.ldexp(mp.exp(-mp.mpf(exponent.numerator) / exponent.denominator), bits))
        )
    assert floor_of_exp(exponent, bits) == exact


@given(exponent=st.fractions(0, 200), precision=st.integers(2, 250))
def test_bounds_of_exp_hold_and_are_close(exponent, precision):
    lower, upper = thresholds._exp_bounds(exponent, precision)
    with mp.workprec(1000):
        scaled = mp.ldexp(mp.exp(-mp.mpf(exponent.numerator) / exponent.denominator), precision)
        assert lower <= scaled <= upper <= lower + 2


@given(decay=decays, sides=st.sampled_from([1, 2]), precision=st.integers(8, 40))
@settings(max_examples=60, deadline=None)
def test_bounds_of_partial_sums_hold(decay, sides, precision):
    """At so little precision, what follows the last term is worth many units."""
    lower, upper, rest = thresholds._partial_sums(decay, sides, precision)
    with mp.workprec(400):
        true = [mp.ldexp(w, precision) for w in weights(decay)]
        sums = true[0] + sides * (np.cumsum(true) - true[0])
        for low, high, exact in zip(lower, upper, sums, strict=False):
            assert low <= exact <= high
        assert sums[-1] - sums[len(lower) - 1] <= rest


# The table sampler against its twin, word for word


@pytest.mark.parametrize("word_bits", [1, 3, 8, 13, 14, 15, 30, 63])
@small_laws
def test_table_sampler_is_exact_inversion(decay, word_bits):
    """Short first words leave much open, so the exact path runs all the time."""
    table = threshold_table(decay, 2, word_bits)
    fast = sample_by_table(table, 400, SeededBits(7))
    slow = sample_by_inversion(decay, 400, word_bits, SeededBits(7), table_sampler.CHUNK)
    assert fast.dtype == np.int64
    assert fast.tolist() == slow


@given(decay=decays, word_bits=st.integers(1, 20), n=st.integers(0, 30), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_table_sampler_is_exact_inversion_for_any_law(decay, word_bits, n, seed):
    fast = sample_by_table(threshold_table(decay, 2, word_bits), n, SeededBits(seed))
    assert fast.tolist() == sample_by_inversion(decay, n, word_bits, SeededBits(seed), 1 << 15)


def test_table_sampler_draws_further_words_chunk_by_chunk(monkeypatch):
    monkeypatch.setattr(table_sampler, "CHUNK", 64)
    fast = sample_by_table(threshold_table(gaussian(5), 2, 6), 1000, SeededBits(2))
    assert fast.tolist() == sample_by_inversion(gaussian(5), 1000, 6, SeededBits(2), 64)


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("k", [0, 1, 4])
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_words_at_a_threshold(k, step, sign):
    """One word below the threshold settles it, and so does one above; the threshold does not."""
    threshold = cumulative_thresholds(gaussian(5), 2, 63)[k]
    longer = cumulative_thresholds(gaussian(5), 2, 127)[k] % 2**64
    word = 2 * (threshold + step) + sign
    signed = -1 if sign else 1
    if step:
        further = {(): k + (step > 0)}
    else:
        further = {
            (longer - 1,): k,
            (longer + 1,): k + 1,
            (longer, 0): k,
            (longer, ALL_ONES): k + 1,
        }
    for words, magnitude in further.items():
        drawn = sample_by_table(threshold_table(gaussian(5), 2), 1, ScriptedBits([word, *words]))
        assert drawn.tolist() == [signed * magnitude]


def test_beyond_the_table():
    table = threshold_table(gaussian(5), 2)
    within = len(table.thresholds) - 1
    drawn = sample_by_table(table, 1, ScriptedBits([ALL_ONES, ALL_ONES, ALL_ONES, 5]))
    slow = sample_by_inversion(gaussian(5), 1, 63, ScriptedBits([ALL_ONES] * 3 + [5]), 1)
    assert drawn.tolist() == slow
    assert drawn[0] < -within


def test_zero_has_either_sign_and_is_zero():
    assert sample_by_table(threshold_table(gaussian(5), 2), 2, ScriptedBits([0, 1])).tolist() == [
        0,
        0,
    ]


# The rejection sampler against its twin, word for word


@pytest.mark.parametrize("word_bits", [2, 9, 63])
@pytest.mark.parametrize("margin", [2.0**-40, 0.01, 2.0])
@pytest.mark.parametrize(
    ("decay", "width"),
    [
        (gaussian("1/3"), 1),
        (gaussian(5), 4),
        (gaussian("2345.678"), 2),
        (gaussian("2345.678"), 64),
        (laplace("7/2"), 2),
        (laplace(20), 1),
        (laplace(100), 64),
    ],
    ids=str,
)
def test_rejection_sampler_follows_its_description(decay, width, word_bits, margin):
    """Short words and wide margins send most proposals down the exact path."""
    law = block_law(decay, width, word_bits, margin)
    fast = accepted_proposals(law, 150, SeededBits(5))
    assert fast.tolist() == accepted_by_blocks(decay, width, 150, word_bits, SeededBits(5))


@given(
    decay=decays, log_width=st.integers(0, 6), word_bits=st.integers(1, 20), seed=st.integers(0, 99)
)
@settings(max_examples=40, deadline=None)
def test_rejection_sampler_follows_its_description_for_any_law(decay, log_width, word_bits, seed):
    width = 2**log_width
    fast = accepted_proposals(block_law(decay, width, word_bits), 20, SeededBits(seed))
    assert fast.tolist() == accepted_by_blocks(decay, width, 20, word_bits, SeededBits(seed))


@pytest.mark.parametrize("huge", [2**99 + Fraction(1, 3**60), Fraction(10**40 + 1, 3 * 10**12)])
def test_rejection_sampler_is_exact_for_giant_rationals(huge):
    decay = gaussian(huge)
    width = block_width(decay)
    fast = accepted_proposals(block_law(decay, width, margin=0.01), 60, SeededBits(4))
    # The blocks of the twin come from the certified table; 300-bit sums would take minutes.
    law = block_law(decay, width)
    bits = SeededBits(4)
    slow = [law.settle(words, bits) for words in bits.words(180).reshape(60, 3)]
    assert fast.tolist() == [z for z in slow if z is not None]


def test_acceptance_reads_further_words():
    decay, width = gaussian(5), 4
    law = block_law(decay, width)
    first, second = 0, 3  # block 0, offset 3
    edge = floor_of_exp(decay.exponent(3), 128)
    high, low = divmod(edge, 2**64)
    for words, kept in {
        (high - 1,): [3],
        (high + 1,): [],
        (high, low - 1): [3],
        (high, low + 1): [],
        (high, low, 0): [3],
        (high, low, ALL_ONES): [],
    }.items():
        drawn = accepted_proposals(law, 1, ScriptedBits([first, second, *words]))
        assert drawn.tolist() == kept


@pytest.mark.parametrize("decay", [gaussian(10**12), gaussian(2**100), laplace(10**9)], ids=str)
def test_floats_decide_only_what_is_certain(decay, monkeypatch):
    """Acceptance words 2^-38 from the edge: the kernel is on its own, and right."""
    width = block_width(decay)
    law = block_law(decay, width)
    monkeypatch.setattr(type(law), "settle", None)
    ends = law.table.thresholds.tolist()
    for block in (0, 1, 50, 1000, len(ends) // 2):
        for offset in (1, width // 3, width - 1):
            magnitude = block * width + offset
            edge = floor_of_exp(decay.exponent(magnitude) - decay.exponent(block * width), 64)
            for third, kept in [(edge - 2**26, [magnitude]), (edge + 2**26, [])]:
                words = [2 * (ends[block] - 1), offset, third]
                if third < 2**64:
                    assert accepted_proposals(law, 1, ScriptedBits(words)).tolist() == kept


def test_a_negative_zero_is_rejected_on_both_paths():
    decay = gaussian(5)
    for margin in (2.0**-40, 2.0):
        law = block_law(decay, 4, margin=margin)
        assert accepted_proposals(law, 1, ScriptedBits([1, 0, 0])).tolist() == []
        assert accepted_proposals(law, 1, ScriptedBits([0, 0, 0])).tolist() == [0]


@given(
    decay=st.one_of(
        st.builds(gaussian, st.integers(1, 2**100)), st.builds(laplace, st.integers(1, 2**50))
    )
)
def test_blocks_are_few_and_flat(decay):
    width = block_width(decay)
    assert width & (width - 1) == 0
    last = bisect_left(range(2**15), 45, key=lambda block: decay.exponent(block * width))
    assert last <= 2**14
    if width > 1:
        assert last > 2**13
        rise = decay.exponent(last * width + width) - decay.exponent(last * width)
        assert rise < Fraction(1, 64)


# Goodness of fit


@small_laws
def test_table_sampler_fits_its_law(decay):
    samples = sample_by_table(threshold_table(decay, 2), 200_000, SeededBits(11))
    assert chi_squared_p_value(samples, decay) > 1e-3


@pytest.mark.parametrize(
    ("decay", "width"), [(gaussian("68.49"), 4), (gaussian(2000), 1), (laplace(40), 2)], ids=str
)
def test_rejection_sampler_fits_its_law(decay, width):
    samples = sample_by_rejection(block_law(decay, width), 20_000, SeededBits(12))
    assert chi_squared_p_value(samples, decay) > 1e-3


def test_a_wrong_law_does_not_fit():
    samples = DiscreteGaussian(5).sample(200_000, SeededBits(13))
    assert chi_squared_p_value(samples, gaussian("5.2")) < 1e-6
    assert chi_squared_p_value(np.where(samples == 3, 4, samples), gaussian(5)) < 1e-6


@pytest.mark.parametrize("sigma_squared", [Fraction(5), Fraction(10, 3), Fraction(10**8)])
def test_agreement_with_the_textbook(sigma_squared):
    textbook = TextbookSampler(SeededBits(14))
    theirs = [textbook.gaussian(sigma_squared) for _ in range(3000)]
    ours = DiscreteGaussian(sigma_squared).sample(3000, SeededBits(15))
    edges = np.unique(np.quantile(theirs, np.arange(1, 10) / 10))
    table = [np.bincount(np.digitize(x, edges), minlength=len(edges) + 1) for x in (theirs, ours)]
    assert stats.contingency.chi2_contingency(table).pvalue > 1e-3


def wide_law_p_values(samples, continuous, width):
    """In 100 equal shares of the continuous law (which is within 1e-9 here), and modulo `width`."""
    shares = np.bincount((continuous.cdf(samples) * 100).astype(int), minlength=100)
    residues = np.bincount(samples % width, minlength=width)
    return [float(stats.chisquare(counts).pvalue) for counts in (shares, residues)]


@pytest.mark.parametrize(
    ("law", "continuous"),
    [
        (DiscreteGaussian("1e12"), stats.norm(scale=1e6)),
        (DiscreteLaplace("1e9"), stats.laplace(scale=1e9)),
    ],
)
def test_wide_laws_fit(law, continuous):
    samples = law.sample(300_000, SeededBits(16))
    assert min(wide_law_p_values(samples, continuous, 64)) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        DiscreteGaussian("1/2"),
        DiscreteGaussian(5),
        DiscreteGaussian(456),
        DiscreteGaussian(10**4),
        DiscreteLaplace(1),
        DiscreteLaplace("37/3"),
    ],
    ids=str,
)
def test_ten_million_draws_fit(law):
    """The operating system's bits; a false alarm once in a million runs of each law."""
    decay = gaussian(law.parameter) if isinstance(law, DiscreteGaussian) else laplace(law.parameter)
    samples = law.sample(10**7)
    assert chi_squared_p_value(samples, decay) > 1e-6
    deviation = np.sqrt(np.mean(samples.astype(float) ** 4) - law.variance**2)
    assert abs(np.mean(samples.astype(float) ** 2) - law.variance) < 5 * deviation / 10**3.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "continuous"),
    [
        (DiscreteGaussian(10**14), stats.norm(scale=1e7)),
        (DiscreteLaplace(10**9), stats.laplace(scale=1e9)),
    ],
    ids=["gaussian", "laplace"],
)
def test_ten_million_wide_draws_fit(law, continuous):
    """The operating system's bits; a false alarm once in a million runs of each law."""
    assert min(wide_law_p_values(law.sample(10**7), continuous, 1024)) > 5e-7


# Streams of draws


@pytest.mark.parametrize("law", [DiscreteGaussian(456), DiscreteGaussian(10**12)], ids=str)
class TestLongRuns:
    def test_memory_stays_bounded(self, law):
        law.sample(10, SeededBits(1))  # compile and tabulate
        tracemalloc.start()
        samples = law.sample(2_000_000, SeededBits(1))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < samples.nbytes + 2_000_000

    def test_the_exact_number_of_draws(self, law):
        for n in (0, 1, 8191, 8192, 8193, 100_001):
            assert law.sample(n, SeededBits(2)).shape == (n,)

    def test_the_same_bits_give_the_same_draws(self, law):
        first, second = (law.sample(50_000, SeededBits(3)) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_bits_of_the_operating_system_by_default(self, law):
        assert (law.sample(1000) != law.sample(1000)).any()

    def test_threads_may_draw_at_once(self, law):
        results = {}

        def draw(seed):
            results[seed] = law.sample(50_000, SeededBits(seed))

        threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for seed in range(3):
            np.testing.assert_array_equal(results[seed], law.sample(50_000, SeededBits(seed)))
