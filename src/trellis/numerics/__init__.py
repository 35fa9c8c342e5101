"""Compiled kernels and recursions on trees."""

from trellis.numerics.compiled import drop_stale_kernels

drop_stale_kernels()
