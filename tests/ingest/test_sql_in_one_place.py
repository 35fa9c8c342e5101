"""SQL stands in the files that bear the names of engines, and nowhere else."""

import ast
import re
from pathlib import Path

import trellis.ingest

INGEST = Path(trellis.ingest.__file__).parent
ENGINES = ("duckdb", "adbc.py")
SQL = re.compile(
    r"\b(SELECT|FROM|WHERE|GROUP BY|ORDER BY|JOIN|CAST|TRY_CAST|VARCHAR|BIGINT|HUGEINT|DOUBLE|"
    r"HAVING|LIMIT|UNION|IS NULL|IS NOT NULL|bool_or|coalesce|regexp_\w+|row_number)\b"
)


def docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)  # also those below a name


def sql_in(path):
    tree = ast.parse(path.read_text())
    words = set(docstrings(tree))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in words
        and SQL.search(node.value)
    ]


def test_no_sql_outside_of_engines():
    files = [p for p in INGEST.rglob("*.py") if p.relative_to(INGEST).parts[0] not in ENGINES]
    assert len(files) > 15
    assert {path.name: found for path in files if (found := sql_in(path))} == {}


def test_the_search_finds_sql():
    assert sql_in(INGEST / "duckdb" / "reader.py")
    assert sql_in(INGEST / "duckdb" / "sql.py")
    assert sql_in(INGEST / "adbc.py")
