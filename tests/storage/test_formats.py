"""Run folders that exist: older forms are read, newer ones refused in one line."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import trellis
from kept_runs import KINDS, unpack
from trellis.cli.app import app
from trellis.privacy.protection import NOT_KNOWN
from trellis.storage.formats import FORMAT
from trellis.storage.plans import read_plan
from trellis.verify import verify_run
from trellis.verify.files.safe_files import FORMAT as VERIFIED
from trellis.workflow.public.run_folder import RunFolder
from worlds import write_world

NUMBERED = ("plan.json", "run.json", "privacy.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    return trellis.run(trellis.Spec.load(write_world(folder)), folder / "run").path


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_files_carry_the_number_of_their_form(finished):
    assert FORMAT == VERIFIED == 3
    for name in NUMBERED:
        assert json.loads((finished / name).read_text())["format"] == FORMAT


@pytest.mark.parametrize("kind", KINDS)
def test_folders_of_the_first_format_are_read(tmp_path, kind):
    run = unpack(kind, tmp_path)
    for name in NUMBERED:
        assert "format" not in json.loads((run / name).read_text())
    assert [f.problems for f in verify_run(run) if f.problems] == []
    release = trellis.Release(run)
    query = ("total",) if "histogram" in kind else ()
    assert all(release.table(level, *query).num_rows for level in release.plan.levels)
    assert invoke("report", run).exit_code == 0
    assert invoke("account", run).exit_code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_public_half_goes_on_from_old_measurements(tmp_path, kind):
    """A run that an older version measured is finished by this one."""
    run = unpack(kind, tmp_path)
    before = trellis.Release(run).plan
    for name in ("estimates", "release", "report"):
        shutil.rmtree(run / name)
    for name in ("manifest.json", "privacy.json", "deployment.yaml"):
        (run / name).unlink()
    assert invoke("estimate", run).exit_code == 0
    assert [f.problems for f in verify_run(run) if f.problems] == []
    assert trellis.Release(run).plan == before


@pytest.mark.parametrize("name", NUMBERED)
def test_a_newer_form_is_refused_in_one_line(finished, tmp_path, name):
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    content = json.loads((run / name).read_text())
    (run / name).write_text(json.dumps(content | {"format": 4}))
    other = ("estimate", run, "--method", "gls", "--out", tmp_path / "other")
    commands = [("verify", run)]
    if name != "privacy.json":  # which only verify reads
        commands += [other, ("report", run)]
    if name == "plan.json":
        commands += [("account", run), ("account", run / name)]
    for command in commands:
        result = invoke(*command)
        assert result.exit_code == 2, result.output
        assert f"{name} has format 4, and this version of Trellis reads up to 3" in result.stderr
    assert not (tmp_path / "other").exists()
    if name == "plan.json":
        with pytest.raises(trellis.errors.RunFolderError, match="format 4"):
            trellis.Release(run)


@pytest.mark.parametrize("number", ["2", None, 0, 1.5, []])
def test_a_format_that_is_no_number_is_damage(finished, tmp_path, number):
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    content = json.loads((run / "plan.json").read_text())
    (run / "plan.json").write_text(json.dumps(content | {"format": number}))
    with pytest.raises(trellis.errors.RunFolderError, match="damaged"):
        trellis.Release(run)


def test_an_older_folder_states_what_its_spec_required(tmp_path):
    """Requirements were not recorded in format 1: its spec tells them."""
    run = unpack("histogram", tmp_path)
    required = RunFolder(run).plan().protection.required
    stated = yaml.safe_load((run / "spec.yaml").read_text(encoding="utf-8"))
    assert [f"the bounds of constraint {c['name']!r}" for c in stated["constraints"]] == [
        clause for clause in required if "constraint" in clause
    ]
    assert RunFolder(unpack("counts", tmp_path)).plan().protection.required == ()
    shown = CliRunner().invoke(app, ["account", str(run)])
    assert "only changes that keep it are protected" in " ".join(shown.output.split())
    assert read_plan(run / "plan.json").protection.required == (NOT_KNOWN,)


@pytest.mark.parametrize("kind", KINDS)
def test_old_specs_are_read_as_they_are_written_now(tmp_path, kind):
    """So that an old run is resumed with its own spec, and compared with the truth."""
    folder = RunFolder(unpack(kind, tmp_path))
    spec = folder.public_spec()
    assert spec.kind == ("histograms" if "histogram" in kind else kind)
    assert spec.kind == folder.plan().kind
    assert folder.is_of(spec)
    assert not folder.is_of(spec.model_copy(update={"release": "other"}))
