"""The rights that the doctor asks for are those that the manifests give."""

from __future__ import annotations

from pathlib import Path

import yaml

from webhook.kube.doctor.rights import MOVES, certificate_rights, needed_rights

MANIFESTS = Path(__file__).parents[4] / "manifests"


def missing(file: Path, rights) -> list:
    """The rights that no rule of a manifest gives."""
    documents = [document for document in yaml.safe_load_all(file.read_text()) if document]
    rules = [rule for document in documents for rule in document.get("rules") or []]

    def is_granted(right):
        resource = "/".join(filter(None, (right["resource"], right.get("subresource"))))
        return any(
            right["group"] in rule["apiGroups"]
            and resource in rule["resources"]
            and right["verb"] in rule["verbs"]
            and (not rule.get("resourceNames") or right.get("name") in rule["resourceNames"])
            for rule in rules
        )

    return [right for right in rights if not is_granted(right)]


def test_the_manifests_give_every_right_that_a_replica_needs():
    """The doctor never finds the shipped installation without a right."""
    assert missing(MANIFESTS / "30-rbac.yaml", needed_rights("bayplan-system")) == []


def test_the_manifests_give_every_right_that_certificates_need():
    """In the Secret and in the configurations that they install."""
    rights = certificate_rights("bayplan-system", "bayplan-tls", "bayplan")
    assert missing(MANIFESTS / "35-certificates.yaml", rights) == []
    assert missing(MANIFESTS / "30-rbac.yaml", rights) == rights


def test_a_replica_needs_every_right_that_the_manifests_give():
    """A right that an administrator has taken away is found, and no right is granted without need."""
    needed = {(right["group"], right["resource"], right["verb"]) for right in needed_rights("bayplan-system")}
    documents = yaml.safe_load_all((MANIFESTS / "30-rbac.yaml").read_text())
    rules = [rule for document in documents for rule in document.get("rules") or []]
    granted = {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == needed


def test_the_rights_to_move_are_those_of_the_component_alone():
    """The base manifests grant none of them."""
    assert missing(MANIFESTS / "components" / "defragmentation" / "rbac.yaml", MOVES) == []
    assert missing(MANIFESTS / "30-rbac.yaml", MOVES) == list(MOVES)
