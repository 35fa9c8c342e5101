"""The record for the deployments registry: its fields, and what they say."""

import json
from fractions import Fraction

import pytest
import yaml

import size_worlds
import trellis
from trellis.privacy.budget import Budget
from trellis.release.deployment_record import deployment_record, open_fields
from trellis.verify import verify_run
from worlds import plan_for, write_world

FIELDS = {
    "product": {
        "name", "data_curators", "intended_use", "data_product_type", "data_product_region",
        "description", "publication_date", "data_product_sector"},
    "dp_flavor": {
        "name", "input_metric", "bound_on_input_distance", "output_measure",
        "bound_on_output_distance", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit", "privacy_unit_description", "privacy_parameters",
        "privacy_parameters_description"},
    "model": {"model_name", "actors", "release_type", "data_source_type", "access_type"},
    "accounting": {"post_processing", "composition"},
    "implementation": {
        "pre_processing_eda_hyperparameter_tuning", "mechanisms", "justification"},
    "resources": {"sources", "registry_authors"},
}  # fmt: skip
"""The fields of a registry entry, as its published entries of late 2025 have them."""


@pytest.fixture(scope="module", params=["counts", "group_sizes"])
def release(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    if request.param == "group_sizes":
        return size_worlds.release_into(folder)
    return trellis.run(trellis.Spec.load(write_world(folder)))


def test_a_release_has_the_record_in_the_fields_of_the_registry(release):
    record = yaml.safe_load((release.path / "deployment.yaml").read_text(encoding="utf-8"))
    assert set(record) == {"status", "tier", "deployment"}
    assert {name: set(part) for name, part in record["deployment"].items()} == FIELDS
    assert record["deployment"]["product"]["name"] == release.plan.release


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
        assert sentence in loss["privacy_parameters_description"]
    for sentence in privacy["unprotected"]:
        assert sentence in record["deployment"]["dp_flavor"]["unprotected_quantities"]


def test_what_only_the_curator_knows_is_left_open_and_named(release):
    text = (release.path / "deployment.yaml").read_text(encoding="utf-8")
    missing = open_fields(yaml.safe_load(text))
    assert "deployment.product.data_curators" in missing
    assert "deployment.implementation.justification" in missing
    head = text.partition("status:")[0]
    assert all(name in head for name in missing)


def test_pure_noise_is_recorded_as_pure():
    plan = plan_for(budget=Budget(epsilon=Fraction(3, 2)))
    record = deployment_record(plan, "2026-01-31", "1.0")["deployment"]
    assert record["dp_flavor"]["name"] == "Pure DP"
    assert record["dp_flavor"]["bound_on_output_distance"] == "3/2"
    assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.5}


def test_the_record_is_under_the_manifest(release):
    assert all(finding.holds for finding in verify_run(release.path))
    path = release.path / "deployment.yaml"
    kept = path.read_text(encoding="utf-8")
    path.write_text(kept.replace("Draft", "Approved"), encoding="utf-8")
    broken = [finding.check for finding in verify_run(release.path) if not finding.holds]
    path.write_text(kept, encoding="utf-8")
    assert broken == ["hashes"]
