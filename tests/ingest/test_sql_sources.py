"""Records and areas from SQLite and from a real PostgreSQL, and what must never get out."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

import postgres
import trellis
from trellis.errors import SourceError, SpecError
from trellis.ingest.adbc import read_sql
from trellis.spec import Spec
from trellis.spec.sections.sources import SqlSource, may_share_rows
from trellis.verify import verify_run
from trellis.workflow.confidential import measuring as confidential_half
from trellis.workflow.preparing.prepare import prepare
from trellis.workflow.preparing.sources import resolve_source
from worlds import SPEC, changed, write_world

TOWNS = [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1")]
PEOPLE = [("a1", 10), ("a2", 0), ("b1", 25), ("a1", 3)]


def fill(connection, marks: str) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute("CREATE TABLE people (town TEXT, people INTEGER, note TEXT)")
        cursor.execute('CREATE TABLE "odd name" (nation TEXT, state TEXT, town TEXT)')
        for town, people in PEOPLE:
            row = (town, people, "canary-4711")
            cursor.execute(f"INSERT INTO people VALUES ({marks})", row)
        for row in TOWNS:
            cursor.execute(f'INSERT INTO "odd name" VALUES ({marks})', row)
    connection.commit()


@pytest.fixture(scope="module")
def pg_port():
    programs = postgres.find_server()
    if programs is None:
        pytest.skip("NOT TESTED: PostgreSQL; there is no server (package postgresql) here")
    from adbc_driver_postgresql import dbapi

    with postgres.server(programs) as port:
        with dbapi.connect(postgres.address(port)) as connection:
            fill(connection, "$1, $2, $3")
        yield port


@pytest.fixture
def sqlite_file(tmp_path):
    path = tmp_path / "town data.db"
    with sqlite3.connect(path) as connection:
        fill(connection, "?, ?, ?")
    connection.close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, monkeypatch):
    """An address as a spec has it."""
    if request.param == "sqlite":
        request.getfixturevalue("sqlite_file")
        return "sqlite:town data.db"
    port = request.getfixturevalue("pg_port")
    monkeypatch.setenv("DB_USER", postgres.USER)
    monkeypatch.setenv("DB_PASSWORD", postgres.PASSWORD.replace(" ", "%20"))
    return f"postgresql://${{DB_USER}}:${{DB_PASSWORD}}@127.0.0.1:{port}/postgres"


def spec_for(folder, address: str, **changes) -> Spec:
    changes = {
        "data__source": {"sql": address, "table": "people"},
        "hierarchy__source": {"sql": address, "table": "odd name"},
        **changes,
    }
    return Spec.load(write_world(folder, **changes))


def test_a_release_from_a_database_is_that_from_files(tmp_path, address):
    spec, files = spec_for(tmp_path, address), Spec.load(write_world(tmp_path / "files"))
    assert (true_counts(spec) == true_counts(files)).all()
    release = trellis.run(spec)
    assert all(finding.holds for finding in verify_run(release.path))


def true_counts(spec):
    source = resolve_source(spec, spec.data.source, None, "data.source")
    return confidential_half.tabulate(prepare(spec), source).leaves


def test_a_second_release_sees_the_same_records(tmp_path, address):
    """The fingerprint does not depend on the order in which a database gives its rows."""
    trellis.run(spec_for(tmp_path, address), tmp_path / "one")
    reordered = {"sql": address, "query": "SELECT * FROM people ORDER BY people DESC, town"}
    areas = {"data__source": reordered, "hierarchy__public": True}
    trellis.run(spec_for(tmp_path, address, **areas), tmp_path / "two")


def test_queries_take_the_place_of_tables(tmp_path, address):
    query = "SELECT town, sum(people) AS people FROM people WHERE town <> '' GROUP BY town"
    source = {"sql": address, "query": query}
    spec = spec_for(tmp_path, address, data__source=source, hierarchy__public=True)
    assert trellis.check(spec).areas == (1, 2, 3)


def test_neither_address_nor_password_nor_query_gets_into_the_run_folder(tmp_path, address):
    query = "SELECT town, people FROM people WHERE note <> 'planted-0815'"
    source = {"sql": address, "query": query}
    spec = spec_for(tmp_path, address, data__source=source, hierarchy__public=True)
    run = trellis.run(spec).path
    secret = [address, postgres.PASSWORD, postgres.USER, "planted-0815", "town data.db", "odd name"]
    for path in filter(os.path.isfile, run.rglob("*")):
        content = path.read_bytes()
        assert not [word for word in secret if word.encode() in content], path
    assert Spec.parse(yaml.safe_load((run / "spec.yaml").read_text())).data.source is None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"table": "nobody"}, "could not give table 'nobody'"),
        ({"query": "SELEKT 4711"}, "could not give the result of the query"),
        ({"query": "SELECT 1 AS a, 2 AS a"}, "Two columns"),
    ],
)
def test_what_cannot_be_read_is_reported_without_details(tmp_path, address, source, words):
    spec = spec_for(tmp_path, address, data__source={"sql": address, **source},
                    hierarchy__public=True)  # fmt: skip
    with pytest.raises(SourceError, match=words) as caught:
        trellis.run(spec)
    for secret in (postgres.PASSWORD, postgres.USER, "4711", "127.0.0.1"):
        assert secret not in str(caught.value)
    assert caught.value.__cause__ is None
    assert not (tmp_path / "runs").exists()


def test_a_column_that_is_not_there_is_named(tmp_path, address):
    spec = spec_for(tmp_path, address, data__area="city")
    with pytest.raises(SourceError, match="table 'people' has no column 'city'"):
        trellis.run(spec)


def test_postgres_says_what_is_wrong_with_credentials(pg_port):
    for wrong, words in (
        (postgres.address(pg_port, password="no"), "not accepted"),
        (postgres.address(1), "could not be reached"),
        (postgres.address(pg_port).replace("/postgres", "/nowhere"), "no such database"),
    ):
        with pytest.raises(SourceError, match=words) as caught:
            read_sql(wrong, "people", None, "table 'people'")
        assert postgres.PASSWORD not in str(caught.value)
    with pytest.raises(SourceError, match="no such table"):
        read_sql(postgres.address(pg_port), "nobody", None, "table 'nobody'")
    with pytest.raises(SourceError, match="no such column"):
        read_sql(postgres.address(pg_port), None, "SELECT x FROM people", "the result")


def test_postgres_is_not_written_to(pg_port):
    with pytest.raises(SourceError):
        read_sql(postgres.address(pg_port), None, "DELETE FROM people RETURNING *", "the result")
    assert read_sql(postgres.address(pg_port), "people", None, "people").num_rows == len(PEOPLE)
    assert read_sql(postgres.address(pg_port), "public.people", None, "people").num_rows == 4


def test_types_of_postgres_can_be_used(pg_port):
    query = (
        "SELECT '01001'::char(5) AS code, 7::numeric AS exact, 7::smallint AS small, "
        "7::bigint AS big, 'x'::varchar AS word, NULL::text AS nothing"
    )
    found = read_sql(postgres.address(pg_port), None, query, "the result")
    assert found["code"].to_pylist() == ["01001"]
    assert found["big"].to_pylist() == [7]
    assert found["exact"].to_pylist() == ["7"]


def test_a_missing_sqlite_file_is_not_made(tmp_path):
    spec = spec_for(tmp_path, "sqlite:nothing.db")
    with pytest.raises(SourceError, match="There is no file"):
        trellis.plan(spec)
    assert not (tmp_path / "nothing.db").exists()


def test_a_file_that_is_no_database_is_reported(tmp_path):
    (tmp_path / "x.db").write_text("canary-4711 " * 500)
    with pytest.raises(SourceError) as caught:
        read_sql(f"sqlite:{tmp_path / 'x.db'}", "people", None, "table 'people'")
    assert "canary" not in str(caught.value)


def test_mixed_types_of_sqlite_are_reported_without_values(tmp_path):
    with sqlite3.connect(tmp_path / "m.db") as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(1,)] * 5000 + [("canary-4711",)])
    connection.close()
    with pytest.raises(SourceError) as caught:
        read_sql(f"sqlite:{tmp_path / 'm.db'}", "t", None, "table 't'")
    assert "canary" not in str(caught.value)


def test_the_extra_is_named_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite.dbapi", None)
    with pytest.raises(SourceError, match=r"trellis-dp\[sql\]"):
        read_sql(f"sqlite:{tmp_path / 'm.db'}", "t", None, "table 't'")


# -- specs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"sql": "sqlite:x.db"}, "table or query"),
        ({"sql": "sqlite:x.db", "table": "t", "query": "q"}, "table or query"),
        ({"sql": "mysql://db/x", "table": "t"}, "sqlite: or postgresql:"),
        ({"sql": "sqlite:x.db", "tabel": "t"}, "tabel"),
        ({"table": "t"}, "sql"),
        ({"sql": "postgresql://me:hunter2@db/x", "table": "t"}, "environment variable"),
        ({"sql": "postgresql://me:hunter2${X}@db/x", "table": "t"}, "environment variable"),
        ({"sql": "postgresql://db/x?password=hunter2", "table": "t"}, "environment variable"),
        (7, "a path is needed"),
    ],
)
def test_a_source_that_makes_no_sense_is_refused(source, words):
    with pytest.raises(SpecError, match=words) as caught:
        Spec.parse(changed(SPEC, data__source=source))
    assert "hunter2" not in str(caught.value)
    assert "data.source" in str(caught.value)


def test_a_variable_that_is_not_set_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    spec = spec_for(tmp_path, "postgresql://me:${NO_SUCH_VARIABLE}@db/x")
    with pytest.raises(SpecError, match="NO_SUCH_VARIABLE"):
        trellis.plan(spec)


def test_areas_from_the_table_of_the_records_must_be_public(tmp_path, sqlite_file):
    one = {"sql": "sqlite:town data.db", "table": "people"}
    same = {"sql": "sqlite:./town data.db", "table": "people"}
    query = {"sql": "sqlite:town data.db", "query": "SELECT DISTINCT town FROM people"}
    other = {"sql": "sqlite:other.db", "query": "SELECT * FROM areas"}
    for areas, refused in ((same, True), (query, True), (other, False)):
        content = changed(SPEC, data__source=one, hierarchy__source=areas)
        if refused:
            with pytest.raises(SpecError, match="public: true"):
                Spec.parse(content, tmp_path)
            Spec.parse(changed(content, hierarchy__public=True), tmp_path)
        else:
            Spec.parse(content, tmp_path)


def test_two_names_of_one_address_are_seen_through(monkeypatch):
    monkeypatch.setenv("ONE", "db/x")
    monkeypatch.setenv("TWO", "db/x")
    content = changed(
        SPEC,
        data__source={"sql": "postgresql://${ONE}", "table": "people"},
        hierarchy__source={"sql": "postgresql://${TWO}", "table": "people"},
    )
    with pytest.raises(SpecError, match="public: true"):
        Spec.parse(content)


def test_text_of_a_source_shows_no_secret(monkeypatch):
    monkeypatch.setenv("PASS", "hunter2")
    source = SqlSource(sql="postgresql://me:${PASS}@db/x", table="t")
    assert "hunter2" not in repr(source)


def test_commands_that_need_no_database_load_no_driver():
    code = (
        "import sys; from typer.testing import CliRunner; from trellis.cli.app import app; "
        "CliRunner().invoke(app, ['--help']); "
        "sys.exit(any(m.startswith('adbc') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_frames_keep_their_name_in_messages():
    levels = ["nation", "state", "town"]
    areas = pa.table(dict(zip(levels, zip(*TOWNS, strict=True), strict=True)))
    with pytest.raises(SourceError, match="the frame has no column"):
        trellis.run(Spec.parse(SPEC), data=pa.table({"town": ["a1"]}), hierarchy=areas)


@pytest.mark.parametrize("table", ["people", "PEOPLE", "main.people", "Main.People"])
def test_one_table_under_another_spelling_is_the_same(sqlite_file, table):
    records = SqlSource(sql=f"sqlite:{sqlite_file}", table="people")
    other = SqlSource(sql=f"sqlite:{sqlite_file}", table=table)
    assert may_share_rows(records, other, Path)


def test_a_database_under_another_name_is_the_same(sqlite_file, tmp_path):
    linked = tmp_path / "linked.db"
    os.link(sqlite_file, linked)
    records = SqlSource(sql=f"sqlite:{sqlite_file}", table="people")
    assert may_share_rows(records, SqlSource(sql=f"sqlite:{linked}", table="people"), Path)
    assert may_share_rows(records, SqlSource(sql=f"sqlite:{linked}", query="SELECT 1"), Path)
    assert not may_share_rows(records, SqlSource(sql=f"sqlite:{linked}", table="areas"), Path)
