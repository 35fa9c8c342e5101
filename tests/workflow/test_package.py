"""What a programmer finds in the package."""

import pkgutil
from importlib.resources import files

import trellis


def test_dir_shows_the_api():
    for name in ("Spec", "Release", "plan", "run", "check", "__version__"):
        assert name in dir(trellis)
        assert getattr(trellis, name)


def test_types_are_declared():
    """Type checkers read annotations only of packages that hold this file."""
    assert (files("trellis") / "py.typed").is_file()


def test_no_name_of_the_api_is_a_package():
    """Importing `trellis.x` would put the package in the place of a function `x`."""
    modules = {module.name for module in pkgutil.iter_modules(trellis.__path__)}
    assert not modules & set(trellis.__all__)
    assert modules >= {"api", "privacy"}
