"""What a programmer finds in the package."""

from importlib.resources import files

import trellis


def test_dir_shows_the_api():
    for name in ("Spec", "Release", "plan", "run", "check", "__version__"):
        assert name in dir(trellis)
        assert getattr(trellis, name)


def test_types_are_declared():
    """Type checkers read annotations only of packages that hold this file."""
    assert (files("trellis") / "py.typed").is_file()
