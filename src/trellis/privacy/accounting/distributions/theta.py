r"""The characteristic function of a discrete Gaussian with any centre, with error bounds.

X takes the integer x with probability proportional to exp(-(x - a)^2 / (2 sigma^2)). With theta
the normaliser, Poisson summation gives two forms of the same function,

    E e^{itX} = 1 + \sum_x w_x (e^{itx} - 1),        w_x = exp(-(x-a)^2 / (2 sigma^2)) / theta,
    E e^{itX} = e^{iat - sigma^2 t^2 / 2} (1 + \sum_{u != 0} r_u(t)) / (1 + \sum_{u != 0} r_u(0)),
                r_u(t) = exp(-2 \pi u (\pi u - t) sigma^2 - 2 \pi i u a),

the first with few terms for small sigma^2, the second for large; for |t| <= \pi all r_u have
modulus at most 1. Both are written as 1 plus a sum that vanishes with t or with 1/sigma^2, so
that the logarithm, and with it the n-th power, is accurate for any n.

Reference: Canonne, Kamath and Steinke, NeurIPS 2020, arXiv:2004.00010.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.privacy.accounting.distributions.losses import FloatArray

_FEW_TERMS = 0.5  # sigma^2 from which the dual form is used; both need under ten terms there
_NEGLIGIBLE = 46.0  # exp(-46) = 1e-20
_TRUNCATION = 1e-3  # units of round-off, far above the neglected terms
_LOG_TINY = -14.0  # the log of a modulus that may stand for any smaller one in error bounds
_FAR = 60.0  # exp(-60) stands for anything smaller


@dataclass(frozen=True, slots=True, eq=False)
class LogCharacteristic:
    """log E e^{itX}, and what bounds its rounding error.

    The computed n-th power of E e^{itX} is off by at most n * `units` unit round-offs times the
    n-th power of exp(`log_size`), which bounds |E e^{itX}|.
    """

    log: NDArray[np.float64] | NDArray[np.complex128]
    log_size: FloatArray
    units: FloatArray


def log_characteristic(turns: FloatArray, centre: float, sigma_squared: float) -> LogCharacteristic:
    r"""At t = 2 \pi `turns`, |turns| <= 1/2; real where the centre is 0.

    Rounding, in units of 2^-53. An exponent x has relative error at most 10, so a factor
    e^{-x} has 10 x + 1; where it multiplies e^{-x}, 10 x e^{-x} <= 4 per term remains. A phase
    has absolute error at most twice itself. Ten terms of both kinds stay below 80 times the sum
    of their moduli; log1p passes the error on.
    """
    if sigma_squared < _FEW_TERMS:
        return _direct(turns, centre, sigma_squared)
    return _dual(turns, centre, sigma_squared)


def log_normaliser_ratio(centre: float, sigma_squared: float) -> float:
    """Log of theta at centre 0 over theta at `centre`: never negative."""
    if sigma_squared < _FEW_TERMS:
        # Both sums relative to their largest term, so that nothing underflows.
        offsets, exponents = _direct_terms(centre, sigma_squared)
        nearest = float(np.min((offsets - centre) ** 2)) / (2 * sigma_squared)
        at_zero = float(np.sum(np.exp(-_direct_terms(0.0, sigma_squared)[1])))
        return nearest + float(np.log(at_zero / np.sum(np.exp(-exponents))))
    return _log_dual_normaliser(0.0, sigma_squared) - _log_dual_normaliser(centre, sigma_squared)


def tilted_moments(centres: FloatArray, sigma_squared: float) -> tuple[FloatArray, FloatArray]:
    """Mean and variance at each centre; only approximately, to choose among valid tilts."""
    if sigma_squared >= 1:
        return centres, np.full_like(centres, sigma_squared)
    x = np.round(centres)[:, None] + np.arange(-12, 13)
    exponents = (x - centres[:, None]) ** 2 / (2 * sigma_squared)
    weights = np.exp(exponents.min(axis=1, keepdims=True) - exponents)
    weights /= weights.sum(axis=1, keepdims=True)
    mean = (weights * x).sum(axis=1)
    return mean, (weights * (x - mean[:, None]) ** 2).sum(axis=1)


def _direct(turns: FloatArray, centre: float, sigma_squared: float) -> LogCharacteristic:
    offsets, exponents = _direct_terms(centre, sigma_squared)
    weights = np.exp(-exponents)
    weights /= weights.sum()
    real = np.zeros_like(turns)
    imaginary = np.zeros_like(turns)
    moduli = np.zeros_like(turns)
    for x, weight in zip(offsets.tolist(), weights.tolist(), strict=True):
        angle = _within_half_a_turn(x * turns)
        half = np.sin(np.pi * angle)
        real -= 2 * weight * half**2
        moduli += 2 * weight * np.abs(half)
        if centre:
            imaginary += weight * np.sin(2 * np.pi * angle)
    log = _log1p(real, imaginary) if centre else np.log1p(real)
    log_size = np.maximum(np.real(log), _LOG_TINY)
    units = 80 * moduli * np.exp(-log_size) + 2 * np.abs(log_size) + _TRUNCATION
    return LogCharacteristic(log, log_size, units)


def _dual(turns: FloatArray, centre: float, sigma_squared: float) -> LogCharacteristic:
    gaussian = 2 * np.pi**2 * sigma_squared * turns**2 + _log_dual_normaliser(centre, sigma_squared)
    real, imaginary, moduli = np.zeros((3, len(turns)))
    for u in _dual_terms(sigma_squared).tolist():
        for signed in (u, -u):
            exponent = 4 * np.pi**2 * sigma_squared * signed * (signed / 2 - turns)
            modulus = np.exp(-np.minimum(exponent, _FAR))  # underflow would be slow
            moduli += modulus
            if centre:
                angle = 2 * np.pi * _within_half_a_turn(signed * centre)
                real += np.cos(angle) * modulus
                imaginary -= np.sin(angle) * modulus
    log_size = np.log1p(moduli) - gaussian
    units = 10 * np.abs(gaussian) + 80 * moduli + _TRUNCATION
    if not centre:
        return LogCharacteristic(log_size, log_size, units)
    phase = 2 * np.pi * centre * turns
    log = _log1p(real, imaginary) + 1j * phase - gaussian
    return LogCharacteristic(log, log_size, units + 4 * np.abs(phase))


def _log_dual_normaliser(centre: float, sigma_squared: float) -> float:
    u = _dual_terms(sigma_squared)
    weights = np.exp(-2 * (np.pi * u) ** 2 * sigma_squared)
    angles = 2 * np.pi * _within_half_a_turn(u * centre)
    return float(np.log1p(2 * np.sum(weights * np.cos(angles))))


def _within_half_a_turn(turns: FloatArray) -> FloatArray:
    """The same angle within half a turn: exact, for all angles here are short binary fractions."""
    return turns - np.round(turns)


def _log1p(real: FloatArray, imaginary: FloatArray) -> NDArray[np.complex128]:
    """log(1 + z) to a few units of |z|, also near z = 0, where NumPy's own is not."""
    small = np.abs(real) + np.abs(imaginary) < 0.5
    with np.errstate(divide="ignore"):
        log_modulus = np.where(
            small,
            np.log1p(np.where(small, real * (2 + real) + imaginary**2, 0.0)) / 2,
            np.log(np.hypot(1 + real, imaginary)),
        )
    return log_modulus + 1j * np.arctan2(imaginary, 1 + real)


def _direct_terms(centre: float, sigma_squared: float) -> tuple[FloatArray, FloatArray]:
    """Integers around the centre and their exponents above the least one.

    Centres are short binary fractions, so x + x_0 - 2a, and with it the difference of two
    squares, is exact.
    """
    nearest = np.round(centre)
    reach = int(np.sqrt(2 * _NEGLIGIBLE * sigma_squared)) + 2
    x = nearest + np.arange(-reach, reach + 1)
    return x, (x - nearest) * (x + nearest - 2 * centre) / (2 * sigma_squared)


def _dual_terms(sigma_squared: float) -> FloatArray:
    """Those u = 1, 2, ... that can matter: |r_u| <= exp(-2 pi^2 u (u - 1) sigma^2)."""
    u = np.arange(1.0, 4.0)
    return u[2 * np.pi**2 * sigma_squared * u * (u - 1) < _NEGLIGIBLE]
