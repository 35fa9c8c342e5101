"""The national example, on one made-up state: the spec fits the data, and the release is sound."""

import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

import trellis
from trellis.verify import verify_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "nation"


def test_one_made_up_state(tmp_path):
    folder = tmp_path / "trellis" / "examples" / "nation"
    folder.mkdir(parents=True)
    for name in ("get_data.py", "spec.yaml"):
        shutil.copy(EXAMPLE / name, folder)
    done = subprocess.run(
        [sys.executable, folder / "get_data.py", "1"], capture_output=True, text=True, check=True
    )
    assert "made up" in done.stdout
    release = trellis.run(trellis.Spec.load(folder / "spec.yaml"))
    assert all(finding.holds for finding in verify_run(release.path))
    blocks = pq.read_table(folder / "data" / "blocks.parquet")
    assert release.table("block").num_rows == len(blocks) == len(set(blocks["geoid"].to_pylist()))
    assert release.plan.levels == ("nation", "state", "county", "tract", "block_group", "block")
    total = release.table("nation")["count"][0].as_py()
    assert total == sum(blocks["pop"].to_pylist())
