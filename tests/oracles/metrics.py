"""Errors of published counts, one count at a time."""


def plain_errors(truth, published, ends):
    gaps = [y - x for x, y in zip(truth, published, strict=True)]
    inside = [low <= x <= high for x, (low, high) in zip(truth, ends, strict=True)]
    return {
        "mean_absolute_error": sum(map(abs, gaps)) / len(gaps),
        "root_mean_squared_error": (sum(gap * gap for gap in gaps) / len(gaps)) ** 0.5,
        "bias": sum(gaps) / len(gaps),
        "largest_error": max(map(abs, gaps)),
        "coverage": sum(inside) / len(inside),
        "interval_width": sum(high - low for low, high in ends) / len(ends),
    }
