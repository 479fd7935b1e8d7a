"""Unknown versions of other systems are reported, and nothing fails because of them."""

from __future__ import annotations

import pytest

from webhook.kube.api.client import Json
from webhook.kube.versions import examine_versions


class Discovery:
    """An API server that says what it serves: by group and version the resources."""

    def __init__(self, **groups: dict[str, list[str]]) -> None:
        self._answers: dict[str, Json] = {}
        for name, versions in groups.items():
            group = name.replace("_", ".")
            self._answers[f"/apis/{group}"] = {"versions": [{"version": version} for version in versions]}
            for version, resources in versions.items():
                listed = [{"name": resource} for resource in resources]
                self._answers[f"/apis/{group}/{version}"] = {"resources": listed}

    async def find(self, path: str) -> Json | None:
        """One answer, None where there is none."""
        return self._answers.get(path)


async def findings(version: str = "v1.36.3", **groups: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Grades and messages."""
    entries = await examine_versions(Discovery(**groups), version)  # type: ignore[arg-type]
    return [(finding.grade, finding.message) for finding in entries]


@pytest.mark.parametrize("version", ["v1.35.0", "v1.36.3", "v1.37.2-gke.100"])
async def test_what_was_tried_is_well(version: str):
    """Vendors' builds of it too."""
    assert [grade for grade, _ in await findings(version)] == ["ok"]


@pytest.mark.parametrize(
    ("version", "comparison"), [("v1.38.0", "newer"), ("v1.34.9", "older"), ("v2.0.0", "newer")]
)
async def test_another_minor_is_told(version: str, comparison: str):
    """As a warning: `doctor` does not fail for it."""
    text = f"{version} is {comparison} than the versions that Bayplan was tried with, 1.35 to 1.37"
    assert await findings(version) == [("warn", text)]


async def test_a_server_that_names_no_version_is_told():
    """Such as a proxy's."""
    assert await findings("dev") == [("warn", "the API server says that it is dev")]


async def test_a_kind_in_none_of_our_versions_is_told():
    """No webhook is asked about it; where one of ours is served beside it, the API server converts."""
    newer = {"v1": ["jobsets"]}
    text = "JobSet of jobset.x-k8s.io is served as v1; the webhooks are asked about v1alpha2"
    warnings = await findings(**{"jobset_x-k8s_io": newer})
    assert warnings == [("warn", text)]
    served = {**newer, "v1alpha2": ["jobsets"]}
    assert [grade for grade, _ in await findings(**{"jobset_x-k8s_io": served})] == ["ok"]
