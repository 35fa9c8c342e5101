"""One family of histograms, from what was measured to whole children: a chain of links.

`problem` states a family, `solution` what was found and how good it is, `solver` the protocol that
every link keeps: sums kept, bounds kept, status honest. Each link solves a family with the help of
the one inside it; `chain` puts them together:

    least_squares       real counts, the nearest to what was measured
    rounding            whole counts
    repair              bounds kept in whole numbers
    edit_rules          rules kept where sums and bounds allow
    feasible_below      what the children hold can be shared out below them
    fixed_marginals     marginals of few cells are fitted first
"""
