"""The page on histograms runs as printed, on census data and made-up data; so do the examples."""

import shutil

import pytest

from docs.test_tutorial import CENSUS, REPOSITORY, Session, blocks_of

MADE_BY_USE = shutil.ignore_patterns("data", "runs", "*.sqlite")


def copied(tmp_path, name):
    folder = tmp_path / "trellis" / "examples" / name
    shutil.copytree(REPOSITORY / "examples" / name, folder, ignore=MADE_BY_USE)
    return folder


@pytest.mark.parametrize("data", ["generated", "census"])
def test_page_on_histograms(tmp_path, monkeypatch, data):
    if data == "census":
        if not CENSUS.is_file():
            pytest.skip("no ../shared/data/census_blocks_2010_de.parquet beside the repository")
        (tmp_path / "shared" / "data").mkdir(parents=True)
        shutil.copy(CENSUS, tmp_path / "shared" / "data")
    folder = copied(tmp_path, "delaware-groups")
    monkeypatch.chdir(folder)
    session = Session(folder, is_exact=data == "census")
    for block in blocks_of("docs/histograms.md"):
        session.run(block)


@pytest.mark.parametrize("name", ["delaware-groups", "redistricting"])
def test_example_readme(tmp_path, name):
    """On made-up data, and few blocks of it."""
    folder = copied(tmp_path, name)
    session = Session(folder.parents[1])
    for block in blocks_of(f"examples/{name}/README.md"):
        small = block.text.replace("make_data.py\n", "make_data.py 400\n")
        session.run(type(block)(block.kind, small, block.place))
    assert "All promises hold." in session.printed
