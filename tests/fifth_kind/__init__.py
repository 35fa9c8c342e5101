"""A fifth kind of release, as a toy: means of a bounded value over a hierarchy.

Each record states a whole number v from 0 to a declared bound B. For every area, two sums are
measured: of the v, and of what is missing to the bound, B - v. They give the number of records,
(sum + missing) / B, and the mean, B sum / (sum + missing). One record adds B in all to two cells,
so m records of a unit move at most two areas' sums by m B: the price is `Partition(B)`.

It follows the recipe in CONTRIBUTING.md: the parts stand here, and three registries of the package
list them (`registered`).
"""
