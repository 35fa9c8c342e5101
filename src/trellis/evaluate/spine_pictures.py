"""What a spine does to areas and levels, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.evaluate.charts import WIDTH, svg, text
from trellis.model.areas import Effect

_BEFORE, _AFTER = "#999999", "#0072B2"
_LEFT, _TOP, _STEP = 150, 56, 40


def effect_chart(effects: Sequence[Effect]) -> str:
    """Pairs of bars: the mean expected standard error before and after."""
    ordered = sorted(effects, key=lambda e: e.is_level)
    most = max((max(e.error_before, e.error_after) for e in ordered), default=0) or 1.0
    scale = (WIDTH - _LEFT - 120) / most
    parts = [
        _box(_LEFT, 28, 14, _BEFORE), text(_LEFT + 20, 38, "without the spine"),
        _box(_LEFT + 160, 28, 14, _AFTER), text(_LEFT + 180, 38, "with it"),
    ]  # fmt: skip
    for row, effect in enumerate(ordered):
        y = _TOP + row * _STEP
        name = f"{effect.name} (level)" if effect.is_level else effect.name
        parts.append(text(_LEFT - 8, y + 20, name, "end"))
        parts.append(_box(_LEFT, y, scale * effect.error_before, _BEFORE))
        parts.append(_box(_LEFT, y + 15, scale * effect.error_after, _AFTER))
        parts.append(text(_LEFT + scale * effect.error_before + 6, y + 11,
                          f"{effect.error_before:.3g}"))  # fmt: skip
        parts.append(text(_LEFT + scale * effect.error_after + 6, y + 26,
                          f"{effect.error_after:.3g} ({effect.ratio:.2f}x)"))  # fmt: skip
    height = _TOP + _STEP * len(ordered) + 8
    return svg("Mean expected standard error of areas and levels", parts, height)


def _box(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="13" fill="{colour}"/>'
