"""Lookups of policies in a real API server: parameters by watch, permissions by SubjectAccessReview."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.e2e.kube_ledgers import until
from tests.e2e.stage import Cluster
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.kube.api.access_reviews import asking
from webhook.kube.api.kubeconfig import connect
from webhook.kube.state.cluster_watch import ClusterWatch
from webhook.kube.state.param_watch import ParamsWatch
from webhook.policy import load
from webhook.wire.request import UserInfo, from_object
from webhook.workloads import read

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: most-replicas}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]
  validations:
    - expression: object.spec.replicas <= int(params.data.most)
      messageExpression: "'at most ' + params.data.most + ' replicas'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: most-replicas}
spec:
  policyName: most-replicas
  validationActions: [Deny]
  paramRef: {name: most, parameterNotFoundAction: Deny}
"""
RIGHTS = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: only-who-may-delete-nodes}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]
  validations:
    - expression: authorizer.group('').resource('nodes').check('delete').allowed()
"""
LIMIT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: most, namespace: default}\ndata: {most: '%d'}\n"
GROUP = """
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: serve, namespace: default}
spec: {minMember: 3, topologyConstraint: {topology: racks, requiredTopologyLevel: example.com/rack}}
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "annotations": {"scheduling.run.ai/pod-group": "serve"}},
    "spec": {"containers": []},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "default"},
    "spec": {"replicas": 3, "selector": {}, "template": {"spec": {"containers": []}}},
}


async def test_parameters_follow_the_api_server(cluster: Cluster, tmp_path: Path) -> None:
    """A ConfigMap that is made, changed and deleted is what the next decision sees."""
    policies = load([("policy.yaml", POLICY)])
    file = tmp_path / "limit.yaml"
    api = await connect(str(cluster.kubectl.kubeconfig))
    params = ParamsWatch(api)

    def message() -> str:
        around = Environment(params=params)
        return decide(from_object(DEPLOYMENT), policies, None, "validate", around).response.message

    try:
        params.follow(policies)
        await until(lambda: not params.waiting())
        assert "no parameters" in message()
        file.write_text(LIMIT % 2)
        assert cluster.kubectl("apply", "-f", str(file)).status == 0
        await until(lambda: "at most 2 replicas" in message())
        file.write_text(LIMIT % 3)
        assert cluster.kubectl("apply", "-f", str(file)).status == 0
        await until(lambda: not message())
        assert cluster.kubectl("delete", "-f", str(file)).status == 0
        await until(lambda: "no parameters" in message())
    finally:
        await params.close()
        await api.close()


async def test_the_authorizer_asks_the_api_server_for_the_user_of_the_request(cluster: Cluster) -> None:
    """A member of system:masters may, an unknown user may not."""
    policies = load([("policy.yaml", RIGHTS)])
    api = await connect(str(cluster.kubectl.kubeconfig))
    around = Environment(access=asking(api, asyncio.get_running_loop()))

    async def allowed(user: UserInfo) -> bool:
        request = from_object(DEPLOYMENT, user_info=user)
        decision = await asyncio.to_thread(decide, request, policies, None, "validate", around)
        return decision.response.allowed

    try:
        assert await allowed(UserInfo("root", groups=("system:masters",)))
        assert not await allowed(UserInfo("nobody"))
    finally:
        await api.close()


async def test_a_podgroup_in_the_api_server_tells_its_pods_of_their_gang(
    cluster: Cluster, tmp_path: Path
) -> None:
    """What a pod names as its gang is known as soon as it is applied."""
    file = tmp_path / "group.yaml"
    file.write_text(GROUP)
    api = await connect(str(cluster.kubectl.kubeconfig))
    watch = ClusterWatch(api)
    try:
        await watch.start()
        await watch.synced()
        assert cluster.kubectl("apply", "-f", str(file)).status == 0
        await until(lambda: ("default", "serve") in watch.environment().podgroups)
        (group,) = read(POD, podgroups=watch.environment().podgroups).gangs
        assert (group.name, group.size) == ("default/PodGroup/serve", 3)
    finally:
        cluster.kubectl("delete", "-f", str(file))
        await watch.close()
        await api.close()
