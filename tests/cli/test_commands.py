"""Every command on a small generated state: what it says, what it leaves, how it goes on."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import trellis
from command_line import invoke, refused, succeed
from flow_worlds import write_flow_world
from measuring import measure
from steps import replace_step, step
from trellis.cli.app import app
from trellis.privacy.ledger import Ledger
from trellis.samples import demo
from trellis.samples.demo import write_demo
from trellis.samples.redistricting import write_histogram_demo
from trellis.verify import verify_run
from trellis.workflow import running
from trellis.workflow.confidential import measuring as confidential_half
from trellis.workflow.public.run_folder import RunFolder
from worlds import REMOVE, write_world

COMMANDS = ["demo", "check", "plan", "run", "measure", "estimate", "verify", "ledger"]
LEVELS = ["state", "county", "tract", "block_group", "block"]


@pytest.fixture(scope="module")
def state(tmp_path_factory) -> Path:
    """A made-up state that nothing has been released of."""
    folder = tmp_path_factory.mktemp("state")
    write_demo(folder, n_blocks=400)
    return folder


@pytest.fixture(scope="module")
def released(state, tmp_path_factory) -> Path:
    """The same with one finished release; never changed by a test."""
    folder = Path(shutil.copytree(state, tmp_path_factory.mktemp("released") / "w"))
    trellis.run(trellis.Spec.load(folder / "spec.yaml"))
    return folder


@pytest.fixture(scope="module")
def half_done(state, tmp_path_factory) -> Path:
    """The same with measurements, and nothing made of them."""
    folder = Path(shutil.copytree(state, tmp_path_factory.mktemp("half") / "w"))
    measure(trellis.Spec.load(folder / "spec.yaml"))
    return folder


@pytest.fixture
def world(state, tmp_path) -> Path:
    return Path(shutil.copytree(state, tmp_path / "w"))


@pytest.fixture
def measured(half_done, tmp_path) -> Path:
    return Path(shutil.copytree(half_done, tmp_path / "w"))


@pytest.fixture
def done(released, tmp_path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "w"))


def charges(world: Path) -> list:
    return Ledger(world / "ledger.sqlite").entries("demo-state")


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def edit(world: Path, **sections) -> Path:
    """Change keys of sections of the spec."""
    path = world / "spec.yaml"
    content = yaml.safe_load(path.read_text())
    for section, keys in sections.items():
        content[section] = content.get(section, {}) | keys
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def assert_sound(run: Path) -> None:
    assert [f"{f.check}: {f.problems}" for f in verify_run(run) if not f.holds] == []


# -- general --------------------------------------------------------------------------------------


def test_version():
    assert succeed("--version").split() == ["trellis", trellis.__version__]


def test_summaries_of_commands_are_whole_sentences_at_80_columns():
    listed = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    _, _, lines = listed.partition("Commands:\n")
    summaries = dict(line.split(maxsplit=1) for line in lines.strip().splitlines())
    assert set(summaries) >= set(COMMANDS)
    for summary in summaries.values():
        assert summary.endswith(".")
        assert not summary.endswith("...")


def test_the_demo_prints_commands_that_work_from_here(done, tmp_path):
    """The environment need not be active: the program is then named by its path."""
    program = tmp_path / "bin dir" / "trellis"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom trellis.cli import main\nmain()\n")
    program.chmod(0o755)
    quoted = {**os.environ, "PATH": os.defpath}
    said = subprocess.run([program, "demo", "--out", done], env=quoted, cwd=tmp_path,
                          capture_output=True, text=True, check=True).stdout  # fmt: skip
    _, _, after = said.partition("Try next:\n")
    lines = [line.strip() for line in after.splitlines()]
    assert [line[0] for line in lines] == ["#", "'"] * 4
    for line in lines[1:2] + lines[-1:]:  # verify and ledger
        subprocess.run(line, shell=True, env=quoted, cwd=tmp_path, check=True)
    shown = subprocess.run([program, "demo", "--out", done], cwd=tmp_path, check=True, text=True,
                           env={**os.environ, "PATH": str(program.parent)},
                           capture_output=True).stdout  # fmt: skip
    assert "\n  trellis verify " in shown


def test_the_demo_states_its_sizes():
    said = " ".join(succeed("demo", "--help").split())
    assert "50,000 blocks" in said
    assert "6,000 blocks" in said
    assert inspect.signature(write_demo).parameters["n_blocks"].default == 50_000
    assert inspect.signature(write_histogram_demo).parameters["n_blocks"].default == 6_000


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    text = succeed(command, "--help")
    assert "Usage" in text
    assert "--help" in text
    listed = succeed("--help")
    assert re.search(rf"^\s+{command}\s+\S", listed, re.MULTILINE)


def imported_by(*arguments: str) -> tuple[int, set[str]]:
    program = (
        "import sys\n"
        f"sys.argv = ['trellis', *{list(arguments)!r}]\n"
        "from trellis.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code or 0\n"
        "print('MODULES', code, *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    _, code, *modules = done.stdout.splitlines()[-1].split()
    return int(code), set(modules)


def test_quick_commands_do_without_numba(released):
    """Importing it takes over a second."""
    ledger = ["ledger", "demo-state", "--ledger", str(released / "ledger.sqlite")]
    quick = [["--help"], ["--version"], ["check", str(released / "spec.yaml")], ledger]
    for arguments in quick:
        code, modules = imported_by(*arguments)
        assert code == 0
        assert "trellis" in modules
        assert "numba" not in modules, arguments
    assert "numba" in imported_by("plan", str(released / "spec.yaml"))[1]  # the test can fail


# -- check and plan -------------------------------------------------------------------------------


def test_check_says_that_all_is_well_and_writes_nothing(world):
    before = hashes(world)
    said = succeed("check", world / "spec.yaml")
    assert "is fine: demo, 5 levels, 400 areas" in said
    assert "Nothing was spent" in said
    assert hashes(world) == before


def test_check_of_flows_counts_pairs(tmp_path):
    said = succeed("check", write_flow_world(tmp_path))
    assert "pairs on the last" in said
    assert "areas" not in said.replace("areas.csv", "")


def test_check_allows_a_new_edition_that_is_declared(done):
    people = done / "data" / "people.parquet"
    pq.write_table(pq.read_table(people).slice(1), people)
    assert "--new-edition" in refused("check", done / "spec.yaml")
    succeed("check", done / "spec.yaml", "--new-edition")


def test_plan_shows_shares_noise_errors_and_the_guarantee(world):
    said = succeed("plan", world / "spec.yaml")
    for level in LEVELS:
        assert level in said
    for share in ("1/15", "2/15", "4/15", "8/15"):
        assert share in said
    assert "rho = 1." in said
    assert re.search(r"delta = 1e-10: epsilon <= \d+\.\d{4}", said)
    assert "exactly" in said


def test_plan_needs_no_records_and_no_ledger(world):
    (world / "data" / "people.parquet").unlink()
    before = hashes(world)
    plan = json.loads(succeed("plan", world / "spec.yaml", "--json"))
    assert hashes(world) == before
    assert [level["level"] for level in plan["levels"]] == LEVELS
    assert sum(eval(query["share"]) for query in plan["queries"]) == pytest.approx(1)
    errors = {e["level"]: e for e in plan["expected_standard_errors"]}
    assert errors["state"]["most"] == 0
    assert errors["block"]["median"] > errors["block"]["least"] * 0.99 > 0


# -- run ------------------------------------------------------------------------------------------


def test_run_makes_a_sound_release_and_charges_once(world):
    said = succeed("run", world / "spec.yaml")
    run = world / "runs" / "demo"
    assert f"Released demo into {run}" in said.replace("\n", "")
    assert_sound(run)
    [charge] = charges(world)
    assert charge.is_settled
    assert charge.guarantee.rho == 1
    for level in LEVELS:
        table = pq.ParquetFile(run / "release" / f"{level}.parquet").read()
        assert table.column_names == [
            "geocode", "level", "cell", "count", "std_error", "lower", "upper",
        ]  # fmt: skip
        assert (run / "release" / f"{level}.csv").exists()


def test_a_finished_run_is_left_alone(done):
    before = hashes(done)
    assert "finished already; nothing was done or spent" in succeed("run", done / "spec.yaml")
    assert hashes(done) == before


@pytest.mark.parametrize("command", ["run", "measure"])
def test_a_finished_run_says_if_the_records_have_changed(done, command):
    people = done / "data" / "people.parquet"
    pq.write_table(pq.read_table(people).slice(1), people)
    before = hashes(done)
    result = invoke(command, done / "spec.yaml")
    assert result.exit_code == 0
    [line] = [line for line in result.stderr.splitlines() if "records have changed" in line]
    assert "a new name" in line
    assert "--new-edition" in line
    assert hashes(done) == before  # nothing of it is kept, spent or published
    succeed("run", done / "spec.yaml", "--out", done / "second", "--new-edition")
    assert "records have changed" not in invoke("run", done / "spec.yaml", "--out",
                                                done / "second").stderr  # fmt: skip


def test_a_finished_run_whose_records_are_the_same_warns_of_nothing(done):
    assert "warning" not in invoke("run", done / "spec.yaml").stderr


def test_a_finished_run_needs_neither_records_nor_ledger(done):
    shutil.rmtree(done / "data")
    (done / "ledger.sqlite").unlink()
    assert "finished already" in succeed("run", done / "spec.yaml")


def test_another_folder_is_another_release_and_charged_again(done):
    succeed("measure", done / "spec.yaml", "--out", done / "second")
    assert len(charges(done)) == 2
    one, other = (done / place / "measurements" for place in ("runs/demo", "second"))
    assert hashes(one) != hashes(other)  # fresh noise
    assert (
        hashes(one)["level=state/query=total.parquet"]
        == (hashes(other)["level=state/query=total.parquet"])
    )  # an exact total


@pytest.mark.parametrize(
    "change",
    [
        {"privacy": {"budget": {"rho": 2}}},
        {"privacy": {"unit": "household"}},
        {"output": {"confidence": "1/2"}},
        {"estimate": {"method": "topdown"}},
    ],
)
def test_a_different_spec_into_the_same_folder_is_refused(done, change):
    before = hashes(done / "runs")
    line = refused("run", edit(done, **change))
    assert "holds a run of another spec" in line
    assert hashes(done / "runs") == before
    assert len(charges(done)) == 1


def test_the_limit_may_change_without_a_new_release(done):
    """Places and limits are not part of what is released."""
    assert "finished already" in succeed("run", edit(done, ledger={"limit": {"rho": 9}}))


def test_a_changed_input_is_released_as_a_new_edition(done):
    people = done / "data" / "people.parquet"
    pq.write_table(pq.read_table(people).slice(1), people)
    out = ["--out", done / "second"]
    assert "has changed since" in refused("run", done / "spec.yaml", *out)
    assert not (done / "second").exists()
    succeed("measure", done / "spec.yaml", *out, "--new-edition")
    assert [charge.edition for charge in charges(done)] == [1, 2]


def test_quiet_says_nothing(world):
    for arguments in (
        ["check", world / "spec.yaml", "--quiet"],
        ["--quiet", "run", world / "spec.yaml"],
        ["run", world / "spec.yaml", "-q"],
        ["verify", world / "runs" / "demo", "-q"],
    ):
        result = invoke(*arguments)
        assert result.exit_code == 0
        assert result.stdout + result.stderr == ""


def test_progress_goes_to_standard_error_in_plain_lines(world):
    result = invoke("run", world / "spec.yaml")
    assert [line for line in result.stderr.splitlines() if line.endswith(" ...")] == [
        "plan ...", "tabulate ...", "measure ...", "estimate ...", "release ...", "report ...",
    ]  # fmt: skip
    assert not re.search(r"\d", result.stderr)  # no durations, no numbers of rows


# -- measure, estimate, verify --------------------------------------------------------------------


def test_the_two_halves_make_the_same_as_a_run(world, tmp_path):
    run = tmp_path / "run"
    said = succeed("measure", world / "spec.yaml", "--out", run)
    assert "trellis estimate" in said
    assert RunFolder(run).is_measured
    assert not RunFolder(run).is_finished
    assert "Measured into" in succeed("measure", world / "spec.yaml", "--out", run)
    assert len(charges(world)) == 1
    shutil.rmtree(world)  # the public half needs neither records, nor spec, nor ledger
    assert "Released into" in succeed("estimate", run)
    assert_sound(run)
    assert "finished already; nothing was done" in succeed("estimate", run)


@pytest.mark.parametrize("method", ["gls", "topdown"])
def test_another_method_goes_into_another_folder_and_costs_nothing(done, method):
    run, other = done / "runs" / "demo", done / "other"
    before = hashes(run)
    succeed("estimate", run, "--method", method, "--out", other)
    assert hashes(run) == before
    assert hashes(other / "measurements") == hashes(run / "measurements")
    assert_sound(other)
    assert len(charges(done)) == 1
    table = pq.ParquetFile(other / "release" / "block.parquet").read()
    assert (table["std_error"].null_count == len(table)) == (method == "topdown")
    assert (str(table.schema.field("count").type) == "double") == (method == "gls")


def test_estimate_refuses_what_it_cannot_do(done):
    run = done / "runs" / "demo"
    assert "--method and --out go together" in refused("estimate", run, "--method", "gls")
    assert "--method and --out go together" in refused("estimate", run, "--out", done / "x")
    assert "Method 'magic' is not available" in refused(
        "estimate", run, "--method", "magic", "--out", done / "x"
    )
    assert "holds a run already" in refused("estimate", run, "--method", "gls", "--out", run)
    assert "not a run folder" in refused("estimate", done / "data")
    assert "not a run folder" in refused("estimate", done / "missing")
    shutil.rmtree(run / "measurements")
    (run / "manifest.json").unlink()
    assert "holds no measurements" in refused("estimate", run)
    assert "no measurements" in refused("estimate", run, "--method", "gls", "--out", done / "x")
    assert not (done / "x").exists()


def test_topdown_is_refused_where_a_level_was_not_measured(world):
    spec = edit(world, privacy={"shares": {"county": "1/2", "block": "1/2"}})
    succeed("measure", spec)
    arguments = ["--method", "topdown", "--out", world / "other"]
    assert "was not measured" in refused("estimate", world / "runs" / "demo", *arguments)


@pytest.mark.parametrize(
    "name",
    ["run.json", "plan.json", "hierarchy.parquet", "measurements/level=block/query=total.parquet"],
)
def test_estimate_refuses_damaged_runs_in_one_line(measured, name):
    run = measured / "runs" / "demo"
    (run / name).write_bytes(b"{")
    assert "damaged" in refused("estimate", run)
    assert not (run / "estimates").exists()


def test_verify_tells_what_is_broken(done):
    run = done / "runs" / "demo"
    said = succeed("verify", run)
    assert "All promises hold." in said
    (run / "release" / "county.csv").write_text("nothing\n")
    result = invoke("verify", run)
    assert result.exit_code == 1
    assert "county.csv has changed" in result.stdout
    assert "promises are broken" in invoke("verify", run, "--quiet").stdout
    assert "not a run folder" in refused("verify", done / "data")


# -- demo -----------------------------------------------------------------------------------------


@pytest.fixture
def small_demo(monkeypatch):
    monkeypatch.setattr(demo, "write_demo", lambda folder: write_demo(folder, n_blocks=400))


@pytest.mark.usefixtures("small_demo")
def test_demo_leaves_an_editable_spec_and_says_what_to_do_next(tmp_path):
    out = tmp_path / "demo"
    said = succeed("demo", "--out", out).replace("\n", "")
    for path in ("spec.yaml", "data/people.parquet", "data/blocks.parquet", "ledger.sqlite"):
        assert (out / path).exists()
    assert_sound(out / "runs" / "demo")
    assert f"trellis verify {out / 'runs' / 'demo'}" in said
    assert f"trellis plan {out / 'spec.yaml'}" in said
    assert str(out / "runs" / "demo" / "privacy.json") in said
    before = hashes(out)
    again = succeed("demo", "--out", out)
    assert "exists already and is used as it is" in again.replace("\n", " ")
    assert hashes(out) == before


@pytest.mark.usefixtures("small_demo")
def test_demo_into_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert "could not be written" in refused("demo", "--out", tmp_path / "file")


# -- going on after a crash -----------------------------------------------------------------------


class Crash(Exception):
    """Stands for whatever nobody thought of."""


def crash(*_args, **_kwargs):
    raise Crash


def interrupt(*_args, **_kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "step", ["tabulate", "measure_counts", "write_measurements", "folder_digest", "publish"]
)
def test_measuring_goes_on_after_a_crash_and_is_charged_once(world, monkeypatch, step):
    fail, code = (interrupt, 130) if step == "write_measurements" else (crash, 1)
    run = RunFolder(world / "runs" / "demo")
    with monkeypatch.context() as patch:
        replace_step(patch, step, fail)
        assert invoke("measure", world / "spec.yaml").exit_code == code
    assert not run.is_measured
    assert run.path.exists() == (step != "tabulate")
    succeed("measure", world / "spec.yaml")
    assert run.is_measured
    assert partials(run.path) == []
    [charge] = charges(world)
    assert charge.is_settled
    assert charge.digest == confidential_half.folder_digest(run.measurements)


@pytest.mark.parametrize(
    "step", ["read_measurements", "estimate", "write_estimates", "write_tables", "manifest"]
)
def test_a_run_goes_on_after_the_last_finished_stage(measured, monkeypatch, step):
    fail, code = (interrupt, 130) if step == "estimate" else (crash, 1)
    run = RunFolder(measured / "runs" / "demo")
    before = hashes(run.path)
    with monkeypatch.context() as patch:
        replace_step(patch, step, fail)
        assert invoke("run", measured / "spec.yaml").exit_code == code
    assert not run.is_finished
    assert run.estimates.exists() == (step in ("write_tables", "manifest"))
    succeed("run", measured / "spec.yaml")
    assert_sound(run.path)
    assert len(charges(measured)) == 1
    assert {name: hash_ for name, hash_ in hashes(run.path).items() if name in before} == before


def test_interrupts_are_clean(world, monkeypatch):
    monkeypatch.setattr(running, "measure_into", interrupt)
    result = invoke("run", world / "spec.yaml")
    assert result.exit_code == 130
    assert isinstance(result.exception, SystemExit)
    assert "Stopped" in result.stderr.splitlines()[-1]
    assert not (world / "runs").exists()


@pytest.mark.parametrize("stage", ["manifest.json", "estimates"])
def test_stages_that_were_lost_are_made_again_from_the_same_measurements(done, stage):
    run = done / "runs" / "demo"
    kept = hashes(run)
    for name in ("manifest.json", "privacy.json", "release", "estimates"):
        path = run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        if name == stage:
            break
    succeed("run", done / "spec.yaml")
    assert_sound(run)
    again = hashes(run)
    del kept["manifest.json"], again["manifest.json"]
    assert again == kept  # ties are broken the same way
    assert len(charges(done)) == 1


KILLED_AT = """
import os, sys
from trellis.workflow.confidential import measuring as half
from trellis.cli import main

{patch}
sys.argv = ["trellis", "measure", {spec!r}]
main()
"""
AFTER_WRITING = "half.sync_tree = lambda folder: os._exit(9)"
AFTER_SETTLING = "half.publish = lambda *paths: os._exit(9)"


def killed(world: Path, patch: str) -> None:
    """Die as from a power cut: no handler runs."""
    program = KILLED_AT.format(patch=patch, spec=str(world / "spec.yaml"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 9, done.stderr


def partials(run: Path) -> list[Path]:
    return [path for path in run.iterdir() if path.name.endswith(".partial")]


def test_measurements_without_a_name_are_destroyed_before_noise_is_drawn_again(world, monkeypatch):
    run = world / "runs" / "demo"
    killed(world, AFTER_WRITING)
    [left] = partials(run)
    half_written = hashes(left)
    assert len(half_written) == 5

    drawn = step("measure_counts")

    def draw(*args, **kwargs):
        assert not left.exists()
        return drawn(*args, **kwargs)

    replace_step(monkeypatch, "measure_counts", draw)
    succeed("measure", world / "spec.yaml")
    assert partials(run) == []
    assert hashes(run / "measurements") != half_written
    assert len(charges(world)) == 1


def test_measurements_that_were_settled_are_given_their_name_and_not_drawn_again(
    world, monkeypatch
):
    run = world / "runs" / "demo"
    killed(world, AFTER_SETTLING)
    [left] = partials(run)
    settled = hashes(left)
    replace_step(monkeypatch, "measure_counts", crash)
    succeed("measure", world / "spec.yaml")
    assert hashes(run / "measurements") == settled


def test_settled_measurements_that_were_changed_are_destroyed_and_refused(world):
    run = world / "runs" / "demo"
    killed(world, AFTER_SETTLING)
    [left] = partials(run)
    (left / "level=block" / "query=total.parquet").write_bytes(b"something else")
    assert "measurements are not here" in refused("run", world / "spec.yaml")
    assert partials(run) == []
    assert not (run / "measurements").exists()


def test_an_emptied_or_copied_run_folder_yields_no_second_draw(done):
    run = done / "runs" / "demo"
    copy = Path(shutil.copytree(run, done / "copy"))
    for folder in (run, copy):
        shutil.rmtree(folder / "measurements")
        (folder / "manifest.json").unlink()
        line = refused("run", done / "spec.yaml", "--out", folder)
        assert "has been drawn, but its measurements are not here" in line
    assert len(charges(done)) == 1


def test_of_two_processes_in_one_folder_the_later_draws(world, monkeypatch):
    """The earlier one discards its noise: two draws for one charge would halve it."""
    drawn = step("measure_counts")
    run = world / "runs" / "demo"

    def overtaken(*given):
        Ledger(world / "ledger.sqlite").claim(RunFolder(run).identity().run_id)
        return drawn(*given)

    with monkeypatch.context() as patch:
        replace_step(patch, "measure_counts", overtaken)
        assert "Another process took over" in refused("run", world / "spec.yaml")
    assert partials(run) == []
    assert not (run / "measurements").exists()
    succeed("measure", world / "spec.yaml")
    assert len(charges(world)) == 1


def test_a_settled_draw_of_another_process_is_not_destroyed(world, monkeypatch):
    """Between `settle` and `publish` of one process, another arrives and must not clean up."""
    run = world / "runs" / "demo"
    killed(world, AFTER_SETTLING)
    [left] = partials(run)
    # The newcomer looked before the first one settled, so it goes on to draw.
    monkeypatch.setattr(confidential_half, "_was_settled", lambda *_args: False)
    assert "has been drawn" in refused("run", world / "spec.yaml")
    assert left.is_dir()


def test_a_charge_lost_to_another_process_leaves_no_folder(world, monkeypatch):
    """The check passes, then another release takes what was left under the limit."""
    monkeypatch.setattr(Ledger, "check", lambda *_args, **_kwargs: None)
    spec = edit(world, ledger={"limit": {"rho": "1/2"}})
    assert "has only 1/2 of its limit" in refused("run", spec)
    assert not (world / "runs" / "demo").exists()
    assert charges(world) == []


def test_a_hierarchy_that_changed_since_the_run_began_is_refused(world, monkeypatch):
    with monkeypatch.context() as patch:
        replace_step(patch, "measure_counts", crash)
        assert invoke("run", world / "spec.yaml").exit_code == 1
    blocks = pq.read_table(world / "data" / "blocks.parquet")["block"].to_pylist()
    new = [*blocks, blocks[-1][:12] + "999"]
    pq.write_table(pa.table({"block": new}), world / "data" / "blocks.parquet")
    assert "hierarchy or the plan has changed since the run" in refused("run", world / "spec.yaml")


def test_leftovers_of_a_killed_run_do_not_break_its_promises(done):
    """A power cut while a JSON file is written leaves a hidden one behind."""
    run = done / "runs" / "demo"
    (run / "manifest.json").unlink()
    for name in ("privacy.json", "manifest.json"):
        (run / f".{name}.0123456789abcdef.partial").write_text("{")
    succeed("run", done / "spec.yaml")
    assert_sound(run)


def test_cells_that_changed_places_since_the_run_began_are_refused(tmp_path, monkeypatch):
    """To the hash of a spec the order of keys is nothing; to the columns of a table it is all."""
    people = "town,x,y\na1,1,900\na2,2,800\nb1,3,700\n"
    world = {"people": people, "data__count": REMOVE}
    with monkeypatch.context() as patch:
        replace_step(patch, "measure_counts", crash)
        spec = write_world(tmp_path, data__cells={"few": "x", "many": "y"}, **world)
        assert invoke("run", spec).exit_code == 1
    spec = write_world(tmp_path, data__cells={"many": "y", "few": "x"}, **world)
    assert "the plan has changed since the run" in refused("run", spec)
    spec = write_world(tmp_path, data__cells={"few": "x", "many": "y"}, **world)
    succeed("measure", spec)
