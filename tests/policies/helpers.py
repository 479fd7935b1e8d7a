"""The shipped policies, and a decision by them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from planner.cluster.snapshot import Snapshot
from webhook.admission.decision import decide
from webhook.admission.decision_record import Decision
from webhook.cli.common.inputs import shipped
from webhook.files.reader import documents
from webhook.policy.engine.device_selectors import read_cluster
from webhook.policy.loading.files import load_paths
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import from_object

Json = dict[str, Any]
POLICIES = shipped("policies")
FOLDERS = sorted(path.parent.name for path in POLICIES.glob("*/policy.yaml"))
CLUSTERS = shipped("manifests") / "examples" / "clusters"


@cache
def policies(*folders: str) -> PolicySet:
    """The policies in some folders, without the parameters; with no folder named, all that ships."""
    return load_paths([POLICIES / folder for folder in folders] or [POLICIES])


def with_parameters(**data: Any) -> PolicySet:
    """All policies with other parameters (`**{"scheduler-name.name": "volcano"}`)."""
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "bayplan-parameters"},
        "data": data,
    }
    return replace(policies(), params=(config,))


@cache
def cluster(name: str) -> Snapshot:
    """An example cluster."""
    return read_cluster(
        (document.file, document.value) for document in documents([str(CLUSTERS / f"{name}.yaml")])
    )


def mutate(obj: Json, using: PolicySet | None = None, on: Snapshot | None = None) -> Decision:
    """What the webhook would answer to a CREATE."""
    return decide(from_object(obj, uid="uid"), using or policies(), on, "mutate")


def containers(value: Any) -> list[Json]:
    """Every container, of whatever list, anywhere in an object."""
    if isinstance(value, list):
        return [container for item in value for container in containers(item)]
    if not isinstance(value, dict):
        return []
    own = [item for name in ("containers", "initContainers") for item in value.get(name) or []]
    return own + [container for item in value.values() for container in containers(item)]
