"""A charge buys one set of noise, from the records that were fingerprinted, or a clear refusal."""

import errno
import shutil

import pytest

import trellis
from measuring import measure, reestimate
from steps import replace_step
from trellis.errors import InputError, LedgerError, RunFolderError, SpecError
from trellis.privacy.ledger import Ledger
from trellis.samples.demo import write_demo
from trellis.storage import atomic
from trellis.workflow.confidential import measuring as confidential_half
from trellis.workflow.progress import Silent
from trellis.workflow.public.run_folder import RunFolder


@pytest.fixture
def world(tmp_path):
    write_demo(tmp_path, n_blocks=200)
    return tmp_path


def spec_of(world, **ledger) -> trellis.Spec:
    spec = trellis.Spec.load(world / "spec.yaml")
    content = spec.model_dump(mode="json", exclude_none=True)
    content["ledger"] |= ledger
    return trellis.Spec.parse(content, world)


def test_a_run_goes_on_only_with_the_ledger_it_began_with(world):
    folder = measure(spec_of(world)).path
    shutil.rmtree(folder / "measurements")
    other = spec_of(world, path="other.sqlite")
    with pytest.raises(LedgerError, match="begun with another ledger"):
        trellis.run(other, folder)
    Ledger(world / "other.sqlite").id()
    with pytest.raises(LedgerError, match="begun with another ledger"):
        trellis.run(other, folder)
    with pytest.raises(LedgerError, match="has been drawn"):
        trellis.run(spec_of(world), folder)


def test_a_ledger_may_be_moved(world):
    folder = measure(spec_of(world)).path
    (world / "ledger.sqlite").rename(world / "moved.sqlite")
    assert trellis.run(spec_of(world, path="moved.sqlite"), folder).path == folder


def test_records_that_change_while_they_are_read_are_refused(world, monkeypatch):
    tabulate = confidential_half.tabulate

    def changing(prepared, source, register):
        counts = tabulate(prepared, source, register)
        source.write_bytes(source.read_bytes())  # the same bytes: only the time tells
        return counts

    monkeypatch.setattr(confidential_half, "tabulate", changing)
    with pytest.raises(InputError, match="changed while they were read"):
        trellis.run(spec_of(world))
    assert not (world / "runs").exists()
    assert not Ledger(world / "ledger.sqlite").entries("demo-state")


@pytest.mark.parametrize("step", ["write_measurements", "publish"])
def test_a_full_disk_is_one_line_and_the_run_goes_on_later(world, monkeypatch, step):
    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        replace_step(patch, step, full)
        with pytest.raises(RunFolderError, match=r"could not be written \(No space left"):
            trellis.run(spec_of(world))
    assert trellis.run(spec_of(world)).path.exists()
    assert len(Ledger(world / "ledger.sqlite").entries("demo-state")) == 1


def test_a_stage_that_another_process_finished_is_said_to_be(world, tmp_path):
    target = tmp_path / "stage"
    (target / "inside").mkdir(parents=True)
    with (
        pytest.raises(RunFolderError, match="finished by another process"),
        atomic.new_folder(target) as partial,
    ):
        (partial / "file").touch()
    assert RunFolder(target).path.exists()


def test_a_method_that_does_not_fit_leaves_no_folder(world, tmp_path):
    content = spec_of(world).model_dump(mode="json", exclude_none=True)
    content["privacy"]["shares"] = {"county": "1/2", "block": "1/2"}
    measured = measure(trellis.Spec.parse(content, world))
    with pytest.raises(SpecError, match="topdown works on measured levels only"):
        reestimate(measured, "topdown", tmp_path / "other", Silent())
    assert not (tmp_path / "other").exists()
