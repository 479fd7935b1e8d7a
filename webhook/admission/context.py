"""The immutable inputs of one decision."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from webhook.admission.configuration.settings import Settings
from webhook.admission.environment import Environment
from webhook.cel.libraries.authorizer import Authorizer
from webhook.policy.engine.inputs import Params
from webhook.policy.engine.model import PolicySet
from webhook.wire.request import AdmissionRequest


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a decision is made from; two equal contexts get the same answer.

    `request` carries its Namespace object where the environment knows it. `snapshot` None: no cluster is
    known, and nothing is planned. `params` are the objects beside the policies, then those of the
    environment. `settings`: those of the request's namespace; one decision never sees two.
    """

    request: AdmissionRequest
    policies: PolicySet
    snapshot: Snapshot | None
    environment: Environment
    params: Params
    authorizer: Authorizer
    settings: Settings

    @classmethod
    def of(
        cls,
        request: AdmissionRequest,
        policies: PolicySet,
        snapshot: Snapshot | None,
        environment: Environment,
    ) -> RequestContext:
        """The context of a request as it arrives."""
        if environment.parameters is None:
            environment = environment.beside(policies)
        settings = environment.settings(request.namespace)
        return cls(
            environment.with_namespace(request),
            policies,
            snapshot and settings.of(snapshot),
            environment,
            environment.params_in(request.namespace, policies),
            environment.authorizer(request.user_info),
            settings,
        )

    def as_created(self) -> RequestContext:
        """The same, as if the object of an update were a new one."""
        return replace(self, request=replace(self.request, operation="CREATE", old_object=None))
