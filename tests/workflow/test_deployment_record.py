"""The record for the deployments registry: its fields, and what they say."""

import json
from copy import deepcopy
from fractions import Fraction

import pytest
import yaml

import flow_worlds
import size_worlds
import trellis
from histogram_release_worlds import write_histogram_world
from registry_schema import DEPLOYMENT, faults
from trellis.privacy.budget import Budget
from trellis.release.documents.deployment_record import deployment_record, open_fields
from trellis.verify import verify_run
from worlds import plan_for, write_world


@pytest.fixture(scope="module", params=["counts", "group_sizes", "flows", "histograms"])
def release(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    if request.param == "group_sizes":
        return size_worlds.release_into(folder)
    if request.param == "flows":
        return flow_worlds.release_into(folder)
    if request.param == "histograms":
        return trellis.run(trellis.Spec.load(write_histogram_world(folder)))
    return trellis.run(trellis.Spec.load(write_world(folder)))


def test_a_release_has_the_record_in_the_fields_of_the_registry(release):
    record = yaml.safe_load((release.path / "deployment.yaml").read_text(encoding="utf-8"))
    assert faults(record) == []
    assert record["deployment"]["basic"]["name"] == release.plan.release
    assert set(record["deployment"]) == set(DEPLOYMENT)


def test_the_record_says_what_privacy_json_says(release):
    record = yaml.safe_load((release.path / "deployment.yaml").read_text(encoding="utf-8"))
    privacy = json.loads((release.path / "privacy.json").read_text(encoding="utf-8"))
    loss = record["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == privacy["unit_of_protection"]
    if (pure := privacy["epsilon_pure"]) is not None:
        assert loss["privacy_parameters"] == {"epsilon": float(Fraction(pure))}
    else:
        stated = loss["privacy_parameters"]
        assert stated["rho"] == float(Fraction(privacy["rho"]))
        assert stated["delta"] == 1e-10
        assert stated["epsilon"] >= privacy["epsilon_at_delta"]["1e-10"]
    for sentence in privacy["guarantee"]:
        assert sentence in loss["privacy_parameters_details"]
    for sentence in privacy["unprotected"]:
        assert sentence in record["deployment"]["dp_variant"]["unprotected_quantities"]


def test_what_only_the_curator_knows_is_left_open_and_named(release):
    text = (release.path / "deployment.yaml").read_text(encoding="utf-8")
    missing = open_fields(yaml.safe_load(text))
    assert "deployment.basic.data_curators" in missing
    assert "deployment.implementation.justification" in missing
    head = text.partition("url_slug:")[0]
    assert all(name in head for name in missing)


def test_pure_noise_is_recorded_as_pure():
    plan = plan_for(budget=Budget(epsilon=Fraction(3, 2)))
    record = deployment_record(plan, "2026-01-31", "1.0")["deployment"]
    assert record["dp_variant"]["variant_name"] == "Pure DP"
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.5}


@pytest.mark.parametrize("name", ["Münster 2026_a", "a.b-c", "x y"])
def test_the_address_is_made_of_the_name(name):
    slug = deployment_record(plan_for(release=name), "2026-01-31", "1.0")["url_slug"]
    assert slug == {"Münster 2026_a": "münster-2026-a", "a.b-c": "a-b-c", "x y": "x-y"}[name]


def test_the_schema_finds_what_the_registry_would_refuse():
    """The schema is ours, so it must be able to fail."""
    good = deployment_record(plan_for(), "2026-01-31", "1.0")
    assert faults(good) == []
    for section, key, value, message in (
        ("basic", "data_curators", None, "deployment.basic.data_curators"),
        ("basic", "publication_date", "31 January", "deployment.basic.publication_date"),
        ("dp_variant", "variant_name", "Rho DP", "deployment.dp_variant.variant_name"),
        ("dp_variant", "input_metric", "x", "deployment.dp_variant.input_metric"),
        ("administrative", "registry_authors", [], "deployment.administrative.registry_authors"),
        ("privacy_loss", "privacy_parameters", {"rho": "1/2"}, "privacy_parameters.rho"),
    ):
        bad = deepcopy(good)
        bad["deployment"][section][key] = value
        assert any(message in fault for fault in faults(bad)), message
    assert faults({k: v for k, v in good.items() if k != "url_slug"}) == ["url_slug is missing"]
    assert faults(good | {"product": {}}) == ["product is not a field"]


def test_the_record_is_under_the_manifest(release):
    assert all(finding.holds for finding in verify_run(release.path))
    path = release.path / "deployment.yaml"
    kept = path.read_text(encoding="utf-8")
    path.write_text(kept.replace("Draft", "Approved"), encoding="utf-8")
    broken = [finding.check for finding in verify_run(release.path) if not finding.holds]
    path.write_text(kept, encoding="utf-8")
    assert broken == ["hashes", "deployment"]
