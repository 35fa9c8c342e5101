"""Slow, obvious versions of the samplers and of the laws they follow."""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
from mpmath import mp
from scipy import stats

from trellis.privacy.thresholds import Decay

PRECISION = 300


def gaussian(sigma_squared) -> Decay:
    return Decay(Fraction(0), 1 / (2 * Fraction(sigma_squared)))


def laplace(scale) -> Decay:
    return Decay(1 / Fraction(scale), Fraction(0))


def weights(decay: Decay) -> list[mpmath.mpf]:
    """exp(-exponent(m)) for m = 0, 1, ... until below 2^-PRECISION."""
    with mp.workprec(PRECISION + 50):
        found = []
        while not found or found[-1] > mp.ldexp(1, -PRECISION):
            found.append(exp_minus(decay.exponent(len(found))))
        return found


def exp_minus(x: Fraction) -> mpmath.mpf:
    return mp.exp(-mp.mpf(x.numerator) / x.denominator)


@lru_cache
def cumulative(decay: Decay, sides: int) -> list[Fraction]:
    """P(M <= k), where M = 0 has weight 1 and m > 0 has `sides` times its weight."""
    with mp.workprec(PRECISION + 50):
        sums = [mp.mpf(1)]
        for weight in weights(decay)[1:]:
            sums.append(sums[-1] + sides * weight)
        return [to_fraction(s / sums[-1]) for s in sums[:-1]]


def to_fraction(x: mpmath.mpf) -> Fraction:
    numerator, exponent = int(x.man), x.exp
    return Fraction(numerator) * Fraction(2) ** exponent


def magnitude_by_inversion(cdf: list[Fraction], word: int, word_bits: int, bits) -> int:
    """The k with cdf[k-1] <= U < cdf[k], reading U from `word` on until only one k is left."""
    u, n_bits = word >> (64 - word_bits), word_bits
    while True:
        lowest = bisect_right(cdf, Fraction(u, 2**n_bits))
        highest = bisect_left(cdf, Fraction(u + 1, 2**n_bits))
        if lowest == highest:
            return lowest
        u, n_bits = u * 2**64 + int(bits.words(1)[0]), n_bits + 64


def sample_by_inversion(decay: Decay, n: int, word_bits: int, bits, chunk: int) -> list[int]:
    cdf = cumulative(decay, sides=2)
    samples = []
    for start in range(0, n, chunk):
        for word in map(int, bits.words(min(chunk, n - start))):
            magnitude = magnitude_by_inversion(cdf, word, word_bits, bits)
            samples.append(-magnitude if word % 2 else magnitude)
    return samples


def accepted_by_blocks(decay: Decay, width: int, n: int, word_bits: int, bits) -> list[int]:
    """Block, offset, acceptance, as the rejection sampler says, in 300-bit arithmetic."""
    cdf = cumulative(decay.at_multiples_of(width), sides=1)
    accepted = []
    for first, second, third in bits.words(3 * n).reshape(n, 3).tolist():
        start = width * magnitude_by_inversion(cdf, first, word_bits, bits)
        magnitude = start + second % width
        if first % 2 and magnitude == 0:
            continue
        exponent = decay.exponent(magnitude) - decay.exponent(start)
        if is_below_exp(third, exponent, bits):
            accepted.append(-magnitude if first % 2 else magnitude)
    return accepted


def is_below_exp(word: int, exponent: Fraction, bits) -> bool:
    with mp.workprec(PRECISION):
        probability = to_fraction(exp_minus(exponent))
    return magnitude_by_inversion([probability], word, 64, bits) == 0


class TextbookSampler:
    """Algorithms 1 to 3 of Canonne, Kamath and Steinke (arXiv:2004.00010), one draw at a time."""

    def __init__(self, bits) -> None:
        self.bits = bits

    def below(self, n: int) -> int:
        """Uniform on 0, ..., n - 1."""
        length = n.bit_length()
        while True:
            value = 0
            for _ in range(0, length, 64):
                value = value * 2**64 + int(self.bits.words(1)[0])
            value %= 2**length
            if value < n:
                return value

    def bernoulli_exp(self, x: Fraction) -> bool:
        """True with probability exp(-x)."""
        while x > 1:
            if not self.bernoulli_exp(Fraction(1)):
                return False
            x -= 1
        k = 1
        while self.below(x.denominator * k) < x.numerator:
            k += 1
        return k % 2 == 1

    def laplace(self, scale: int) -> int:
        while True:
            u = self.below(scale)
            if not self.bernoulli_exp(Fraction(u, scale)):
                continue
            v = 0
            while self.bernoulli_exp(Fraction(1)):
                v += 1
            magnitude, negative = u + scale * v, self.below(2)
            if magnitude or not negative:
                return -magnitude if negative else magnitude

    def gaussian(self, sigma_squared: Fraction) -> int:
        scale = int(sigma_squared**0.5) + 1
        while True:
            y = self.laplace(scale)
            if self.bernoulli_exp((abs(y) - sigma_squared / scale) ** 2 / (2 * sigma_squared)):
                return y


def chi_squared_p_value(samples: np.ndarray, decay: Decay) -> float:
    """Against the exact law, value by value; those expected less than 5 times join a tail."""
    with mp.workprec(100):
        half = [float(w) for w in weights(decay)]
    total = 2 * sum(half) - 1
    last = max(k for k, w in enumerate(half) if len(samples) * w / total >= 5)
    tail = sum(half[last:])
    magnitudes = [tail, *reversed(half[1:last]), *half[:last], tail]
    expected = np.array(magnitudes) * len(samples) / total
    observed = np.bincount(np.clip(samples, -last, last) + last, minlength=2 * last + 1)
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, 2 * last))
