"""The immutable inputs of one decision."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.cluster.snapshot import Snapshot
from webhook.admission.configuration.settings import Settings
from webhook.admission.environment import Environment
from webhook.cel.libraries.authorizer import Authorizer
from webhook.policy.engine.inputs import Params
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import AdmissionRequest


@dataclass(frozen=True, slots=True)
class RequestContext:
    """All inputs of a decision; equal contexts get the same decision.

    `request` includes its Namespace object if the environment knows it. If `snapshot` is None, no cluster is
    known and nothing is planned. `params`: the parameter objects of policies, from the policy files, then
    from the environment; Bayplan's own parameters are in `environment.parameters`. `settings`: the settings
    of the request's namespace, the same throughout the decision.
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
        """Returns the context of a request: with its Namespace object, the settings of its namespace, and the
        snapshot with what these settings state about the cluster.

        If the environment has no `parameters` yet, they are read first, from the policies' files and the
        ConfigMap.
        """
        if environment.parameters is None:
            environment = environment.with_policy_parameters(policies)
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
        """Returns the context of a request that creates the object of this update."""
        return replace(self, request=replace(self.request, operation="CREATE", old_object=None))
