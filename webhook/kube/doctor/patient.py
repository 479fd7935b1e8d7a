"""What `bayplan doctor` examines: a cluster and an installation in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from webhook.admission.configuration.parameters import read_parameters
from webhook.admission.configuration.settings import Settings, same_in_all_namespaces
from webhook.kube.api.client import Api
from webhook.kube.installed import installed_settings
from webhook.policy.model.parameters import PARAMETERS
from webhook.policy.model.policy import PolicySet

APPLY = "kubectl apply -k manifests/"


@dataclass(frozen=True, slots=True)
class Patient:
    """The cluster and the installation that are checked. `namespace`, `name`: of the Deployment."""

    api: Api
    namespace: str
    name: str

    @property
    def now(self) -> datetime:
        """The API server's time, because certificates and leases do not count by this machine's clock."""
        return datetime.fromtimestamp(self.api.now(), UTC)


async def settings_by_namespace(patient: Patient) -> Callable[[str], Settings]:
    """Returns the settings by namespace, from the Deployment's `--mode` and the ConfigMap."""
    chosen = same_in_all_namespaces(await installed_settings(patient.api, patient.namespace, patient.name))
    configured = await patient.api.find(f"/api/v1/namespaces/{patient.namespace}/configmaps/{PARAMETERS}")
    return partial(read_parameters(PolicySet(), configured)[0].settings, chosen)
