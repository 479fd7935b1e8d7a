"""The rights that the doctor asks for are those that the manifests give."""

from __future__ import annotations

from pathlib import Path

import yaml

from webhook.kube.doctor import needed_rights

RBAC = Path(__file__).parents[3] / "manifests" / "30-rbac.yaml"


def test_the_manifests_give_every_right_that_a_replica_needs():
    """So that an installation of ours is never found wanting, and a new watch is never forgotten there."""
    documents = [one for one in yaml.safe_load_all(RBAC.read_text()) if one]
    rules = [rule for one in documents for rule in one.get("rules") or []]

    def given(right):
        return any(
            right["group"] in rule["apiGroups"]
            and right["resource"] in rule["resources"]
            and right["verb"] in rule["verbs"]
            and (not rule.get("resourceNames") or right.get("name") in rule["resourceNames"])
            for rule in rules
        )

    assert [right for right in needed_rights("bayplan-system") if not given(right)] == []
