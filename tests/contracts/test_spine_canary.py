"""Privacy contract of spines: planted values turn up nowhere, in nodes without a share neither."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from contracts.canary import found, texts_in
from kinds import WORLDS
from kinds.world import COUNT, TEXT
from trellis.privacy.mechanisms import DiscreteGaussian

AREAS = "region,county,area\nr,c1,a1\nr,c2,a2\nr,c2,a3\nr,c2,a4\n"
PLACES = "area,place\na1,p\na2,p\na3,q\n"
CONTENT = {
    **WORLDS["counts"].planted.spec,
    "hierarchy": {"source": "areas.csv", "columns": ["region", "county", "area"]},
    "areas": {"place": {"source": "places.csv", "area": "area", "entity": "place"}},
    "spine": ["bypass"],
}


@pytest.fixture
def spec(tmp_path):
    """The county c1 has one area: its share goes up, and the area itself is not measured."""
    folder = tmp_path / "w"
    folder.mkdir()
    people = {"area": ["a1", "a2", "a3", "a4"], "people": [COUNT, 5_000_000, 2_000_000, 1]}
    pq.write_table(pa.table({**people, "note": [TEXT] * 4}), folder / "records.parquet")
    (folder / "areas.csv").write_text(AREAS)
    (folder / "places.csv").write_text(PLACES)
    (folder / "spec.yaml").write_text(yaml.safe_dump(CONTENT, sort_keys=False))
    return folder / "spec.yaml"


def test_full_run_shows_no_planted_value(spec, invoke):
    for command in (["check", spec], ["plan", spec, "--suggest"], ["run", spec], ["run", spec]):
        code, texts = invoke(*command)
        assert code == 0, texts
        assert not found(texts)
    code, texts = invoke("verify", spec.parent / "runs" / "canary")
    assert code == 0
    assert not found(texts)
    assert not found(texts_in(spec.parent, leave_out=("records.parquet",)))
    area = "measurements/level=area"
    measured = list((spec.parent / "runs" / "canary" / area).rglob("*.parquet"))
    codes = [code for path in measured for code in pq.read_table(path)["geocode"].to_pylist()]
    assert sorted(codes) == ["a2", "a3", "a4"]  # a1 has no share


def test_mutation_measuring_without_noise_is_found(spec, invoke, monkeypatch):
    monkeypatch.setattr(
        DiscreteGaussian, "sample", lambda _self, n, _bits=None: np.zeros(n, dtype=np.int64)
    )
    invoke("run", spec)
    assert found(texts_in(spec.parent, leave_out=("records.parquet",)))
