"""Pictures that show themselves in a notebook and can be saved as SVG files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from trellis.storage.atomic import write_text
from trellis.workflow.outlook.pictures import write_pictures


class Picture:
    """A picture as SVG; a notebook shows it.

    >>> picture = spec.plan().pictures()["shares.svg"]
    >>> picture.svg[:4]
    '<svg'
    >>> picture.save("shares.svg").name
    'shares.svg'
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | Path) -> Path:
        """Write the file, in place of one that is there."""
        write_text(Path(path), self.svg)
        return Path(path)

    def __repr__(self) -> str:
        return f"Picture({len(self.svg):,} characters of SVG)"

    def _repr_svg_(self) -> str:
        return self.svg


class Pictures(Mapping[str, Picture]):
    """Pictures by the names of their files; a notebook shows all of them.

    >>> pictures = spec.plan().pictures("uniform")
    >>> list(pictures)
    ['shares.svg', 'shares-uniform.svg', 'error-by-budget.svg']
    >>> [path.name for path in pictures.save("pictures")]
    ['shares.svg', 'shares-uniform.svg', 'error-by-budget.svg']
    """

    def __init__(self, svgs: Mapping[str, str]) -> None:
        self._svgs = dict(svgs)

    def save(self, folder: str | Path) -> list[Path]:
        """Write all of them into a folder, which is made where it is missing."""
        return write_pictures(Path(folder), self._svgs)

    def __getitem__(self, name: str) -> Picture:
        return Picture(self._svgs[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._svgs)

    def __len__(self) -> int:
        return len(self._svgs)

    def __repr__(self) -> str:
        return f"Pictures({', '.join(self._svgs)})"

    def _repr_html_(self) -> str:
        return "".join(f"<div>{svg}</div>" for svg in self._svgs.values())
