"""tau-Argus hierarchies: read, written and refused."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trellis
from trellis.errors import InputError, SourceError, SpecError, StructureError, TrellisError
from trellis.ingest.public.hrc import paths_from_hrc
from trellis.spec import Spec
from trellis.workflow.frames import Frames
from trellis.workflow.preparing.prepare import prepare
from worlds import REMOVE, SPEC, changed, write_world

REGIONS = "North\n@N1\n@N2\n@@N21\n@@N22\nSouth\n@S1\n"


def paths_in(folder, text, lead="@", encoding="utf-8"):
    path = folder / "areas.hrc"
    path.write_bytes(text.encode(encoding))
    return paths_from_hrc(path, lead)


def test_lines_become_paths(tmp_path):
    assert paths_in(tmp_path, REGIONS) == [
        ("North", "N1"), ("North", "N2", "N21"), ("North", "N2", "N22"), ("South", "S1"),
    ]  # fmt: skip


FORMS = [
    REGIONS.replace("\n", "\r\n"),
    "\ufeff" + REGIONS,
    REGIONS.rstrip(),
    REGIONS.replace("\n", " \n\n"),
]


@pytest.mark.parametrize("text", FORMS)
def test_line_ends_marks_and_blanks_do_not_matter(tmp_path, text):
    assert paths_in(tmp_path, text) == paths_in(tmp_path, REGIONS)


def test_another_lead_can_be_declared(tmp_path):
    assert paths_in(tmp_path, "a\n--b\n----c\n", lead="--") == [("a", "b", "c")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\n@@b\n", "Line 2"),
        ("@a\n", "Line 1"),
        ("a\n@\n", "Line 2 of areas.hrc has no code"),
    ],
)
def test_broken_lines_are_named(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        paths_in(tmp_path, text)


def test_unreadable_files_are_reported(tmp_path):
    with pytest.raises(SourceError, match="UTF-8"):
        paths_in(tmp_path, "Österreich\n", encoding="latin-1")
    with pytest.raises(SourceError, match="There is no file"):
        paths_from_hrc(tmp_path / "nowhere.hrc")


codes = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="@"), min_size=1)
trees = st.recursive(
    st.just({}), lambda below: st.dictionaries(codes, below, max_size=4), max_leaves=25
)


@given(trees)
def test_written_and_read_again(tmp_path_factory, tree):
    lines, leaves = [], []

    def write(node, above):
        for code, below in node.items():
            lines.append("@" * len(above) + code)
            if below:
                write(below, (*above, code))
            else:
                leaves.append((*above, code))

    write(tree, ())
    folder = tmp_path_factory.mktemp("hrc")
    assert paths_in(folder, "\n".join(lines)) == leaves


TOTAL = {"nation": "Total"}


def world(folder, text=REGIONS, root=TOTAL, hrc="areas.hrc", **more):
    (folder / "areas.hrc").write_text(text, encoding="utf-8")
    hierarchy = {"hrc": hrc, "root": root, **more}
    kept = {key: value for key, value in hierarchy.items() if value is not None}
    people = "town,people\nN1,5\nN21,6\nN22,7\nS1,8\n"
    return Spec.load(write_world(folder, people=people, hierarchy=kept))


def test_a_release_with_such_a_hierarchy(tmp_path):
    release = trellis.run(world(tmp_path))
    assert release.plan.levels == ("nation", "level_1", "level_2", "level_3")
    assert release.table("level_2")["geocode"].to_pylist() == ["N1", "N2", "S1"]
    assert release.table("nation")["count"].to_pylist() == [26]


def test_levels_can_be_named_and_a_single_top_is_the_root(tmp_path):
    spec = world(
        tmp_path, "n\n@N1\n@N21\n@N22\n@S1\n", None, {"source": "areas.hrc", "lead": "@"},
        levels=["nation", "town"],
    )  # fmt: skip
    assert prepare(spec).plan.levels == ("nation", "town")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (REGIONS, {"root": None}),
        (REGIONS, {"levels": ["only"]}),
        ("", {}),
        ("a\n@x\nb\n@x\n", {}),
    ],
)
def test_trees_that_are_none_are_refused(tmp_path, text, changes):
    with pytest.raises((StructureError, InputError)):
        prepare(world(tmp_path, text, **changes))


def test_it_is_one_layout_among_four():
    with pytest.raises(SpecError, match="exactly one"):
        Spec.parse(changed(SPEC, hierarchy__hrc="areas.hrc"))
    with pytest.raises(SpecError, match="goes there"):
        Spec.parse(changed(SPEC, hierarchy__hrc="areas.hrc", hierarchy__columns=REMOVE))


def test_a_frame_cannot_take_its_place(tmp_path):
    with pytest.raises(TrellisError, match="name it in the spec"):
        prepare(world(tmp_path), Frames(hierarchy=pa.table({"x": ["a"]})))


def test_the_place_of_the_file_stays_out_of_the_run_folder(tmp_path):
    assert "areas.hrc" not in str(world(tmp_path).public())
    assert Spec.parse(world(tmp_path).public()).hierarchy.hrc is not None
