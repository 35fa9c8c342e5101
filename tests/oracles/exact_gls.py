"""Generalised least squares for histograms in fractions, where floating point loses its digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from oracles.histogram_family import matrix
from oracles.tree_gls import design


def exact_histogram_gls(hierarchy, schema, measured, values):
    """Estimates of all leaf cells and their covariance, as arrays of fractions; no exact answers.

    `measured[level]` maps queries to variances, `values[level][query]` holds nodes x query cells.
    """
    nodes = np.split(design(hierarchy), np.cumsum(hierarchy.sizes)[:-1])
    size = hierarchy.sizes[-1] * schema.n_cells
    normal = np.full((size, size), Fraction(0))
    right = np.full(size, Fraction(0))
    for level, variances in enumerate(measured):
        for name, variance in variances.items():
            rows = np.kron(nodes[level], matrix(schema, name)).astype(int)
            weight = 1 / Fraction(variance)
            z = np.asarray(values[level][name]).ravel()
            for row, value in zip(rows, z, strict=True):
                at = np.flatnonzero(row)
                normal[np.ix_(at, at)] += weight
                right[at] += weight * int(value)
    covariance = _inverse(normal)
    return covariance @ right, covariance


def exact_marginal(hierarchy, schema, found, level, name):
    """Centres and variances of a query on a level, nodes x query cells."""
    leaves, covariance = found
    nodes = np.split(design(hierarchy), np.cumsum(hierarchy.sizes)[:-1])[level]
    rows = np.kron(nodes, matrix(schema, name)).astype(int)
    shape = (len(nodes), -1)
    variance = np.array([row @ covariance @ row for row in rows])
    return (rows @ leaves).reshape(shape), variance.reshape(shape)


def _inverse(matrix):
    """Gauss and Jordan; a positive definite matrix needs no pivots."""
    n = len(matrix)
    both = np.concatenate([matrix, np.eye(n, dtype=int) * Fraction(1)], axis=1)
    for i in range(n):
        both[i] = both[i] / both[i, i]
        for j in range(n):
            if j != i and both[j, i] != 0:
                both[j] = both[j] - both[j, i] * both[i]
    return both[:, n:]
