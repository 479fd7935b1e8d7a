"""The ConfigMap of parameters: which value wins (namespace, cluster, file), and that tenants cannot set
any.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.model.growth import UNBOUNDED
from tests.effort import calls
from tests.policies.helpers import policies
from webhook.admission.configuration.parameters import MOST_TOLD, Parameters, read_parameters
from webhook.admission.configuration.settings import Settings, default_settings
from webhook.admission.decision import decide
from webhook.admission.environment import Environment
from webhook.policy import load
from webhook.policy.model.policy import PolicySet
from webhook.wire.request import from_object

Json = dict[str, Any]
SYSTEM = "bayplan-system"


def config_map(namespace: str = "", **data: str) -> Json:
    """A ConfigMap of parameters: two underscores in a name mean a dot, one means a dash."""
    metadata = {"name": "bayplan-parameters", **({"namespace": namespace} if namespace else {})}
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": keys}


def beside(*objects: Json) -> PolicySet:
    """The shipped policies, with these parameters in their files."""
    return replace(policies(), params=objects)


def settings(namespace: str, in_cluster: Json, in_file: Json | None = None) -> Settings:
    """The settings of a namespace."""
    environment = Environment.of_objects([in_cluster])
    return environment.with_policy_parameters(beside(*[in_file] if in_file else [])).settings(namespace)


def pod(namespace: str) -> Json:
    """A pod of one GPU that states no CPUs."""
    container = {"name": "main", "image": "trainer", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"containers": [container]},
    }


def changed_by(namespace: str, *objects: Json, in_file: Json | None = None) -> set[str]:
    """The policies that change a pod of a namespace, in a cluster with these objects."""
    environment = Environment.of_objects(objects)
    using = beside(*[in_file] if in_file else [])
    return {
        row.policy for row in decide(from_object(pod(namespace)), using, None, "mutate", environment).effects
    }


def test_the_record_is_filled_from_the_clusters_config_map() -> None:
    """The mode, what gangs reserve by default, and the share from which whole domains are reserved."""
    chosen = settings(
        "ml", config_map(SYSTEM, mode="audit", reserve__default="nodes", reserve__whole_from="0.75")
    )
    assert (chosen.mode, chosen.reserve.mode, chosen.reserve.whole_from) == ("audit", "nodes", 0.75)


def test_growing_pools_and_tolerated_taints_are_settings() -> None:
    """One pool for each line, and a boolean that may also be derived from the nodes."""
    lines = "h100: nodes=16 nvidia.com/gpu=8 label:pool=h100\n\n  cpus: cpu=96 memory=1Ti\n"
    keys = {"growing__pools": lines, "taints__tolerated_by_resource": "true"}
    chosen = settings("ml", config_map(SYSTEM, **keys))
    assert [(pool.name, pool.max_added, dict(pool.labels)) for pool in chosen.growing] == [
        ("h100", 16, {"pool": "h100"}),
        ("cpus", UNBOUNDED, {}),
    ]
    assert chosen.resources_tolerated is True
    assert settings("ml", config_map(SYSTEM)).resources_tolerated is None


def test_the_record_is_filled_from_the_file_beside_the_policies() -> None:
    """The same keys, without a cluster."""
    environment = Environment().with_policy_parameters(beside(config_map(mode="warn")))
    assert environment.settings("ml").mode == "warn"


def test_a_key_counts_as_the_cluster_has_it_and_else_as_the_file_has_it() -> None:
    """The two layers are merged key by key, not object by object."""
    chosen = settings(
        "ml", config_map(SYSTEM, mode="audit"), config_map(mode="warn", reserve__default="none")
    )
    assert (chosen.mode, chosen.reserve.mode) == ("audit", "none")


def test_what_no_source_names_is_as_it_was_chosen_without_them() -> None:
    """A command-line flag applies where no ConfigMap sets the key."""
    flag = Environment(settings=lambda namespace: Settings(mode="audit"))
    assert flag.with_policy_parameters(beside()).settings("ml").mode == "audit"
    assert flag.with_policy_parameters(beside(config_map(mode="off"))).settings("ml").mode == "off"


@pytest.mark.parametrize(
    ("key", "text"), [("growing.pools", "h100: nvidia.com/gpu=8"), ("taints.tolerated-by-resource", "true")]
)
def test_settings_about_nodes_cannot_be_set_for_one_namespace(key: str, text: str) -> None:
    """The controller plans the queue of all namespaces on one snapshot, as decisions do."""
    words = {f"namespace__ml__{key}": text, "namespace__ml__mode": "warn"}
    parameters, problems = read_parameters(policies(), config_map(SYSTEM, **words))
    (problem,) = problems
    assert f"data[namespace.ml.{key}]: applies to the cluster's nodes" in problem
    assert problem.endswith(f"use {key}")
    namespace_settings = parameters.settings(default_settings, "ml")
    assert (namespace_settings.mode, namespace_settings.growing, namespace_settings.resources_tolerated) == (
        "warn",
        (),
        None,
    )


@pytest.mark.parametrize(("namespace", "mode"), [("research", "enforce"), ("ml", "audit"), ("", "audit")])
def test_a_key_of_a_namespace_holds_there_and_nowhere_else(namespace: str, mode: str) -> None:
    """`namespace.research.mode` sets the mode of the namespace research."""
    chosen = settings(namespace, config_map(SYSTEM, mode="audit", namespace__research__mode="enforce"))
    assert chosen.mode == mode


def test_auto_in_a_namespace_overrides_the_setting_for_all_others() -> None:
    """A value that equals the default overrides another one too."""
    words = {"reserve__default": "none", "namespace__research__reserve__default": "auto"}
    assert settings("research", config_map(SYSTEM, **words)).reserve == Settings().reserve


@pytest.mark.parametrize(("namespace", "mended"), [("research", False), ("ml", True)])
def test_a_policy_is_switched_off_in_one_namespace(namespace: str, mended: bool) -> None:
    """A policy with paramRef gets the ConfigMap as merged for the request's namespace."""
    off = config_map(SYSTEM, namespace__research__guaranteed_qos__enabled="false")
    assert ("guaranteed-qos" in changed_by(namespace, off)) is mended


def test_the_cluster_switches_off_what_the_file_switches_on() -> None:
    """The file sets every key, and the cluster's ConfigMap still overrides it."""
    off, on = config_map(SYSTEM, guaranteed_qos__enabled="false"), config_map(guaranteed_qos__enabled="true")
    assert "guaranteed-qos" not in changed_by("ml", off, in_file=on)
    assert "guaranteed-qos" in changed_by("ml", in_file=on)


@pytest.mark.parametrize("in_file", [None, config_map(guaranteed_qos__enabled="true")])
def test_no_tenant_switches_a_policy_off_by_a_config_map_of_that_name(in_file: Json | None) -> None:
    """Neither for other namespaces nor for the tenant's own."""
    tenants = config_map("ml", guaranteed_qos__enabled="false", mode="off")
    assert "guaranteed-qos" in changed_by("ml", tenants, in_file=in_file)
    assert settings("ml", tenants).mode == "enforce"


def test_a_policy_of_kubernetes_own_reads_its_own_parameters_as_upstream_has_it() -> None:
    """With another name and no namespace in paramRef, the object is in the request's namespace."""
    policy = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  validations: [{expression: 'params.data.most == "1"'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny], paramRef: {name: limit, parameterNotFoundAction: Deny}}
"""
    own = {**config_map("ml", most="1"), "metadata": {"name": "limit", "namespace": "ml"}}
    environment = Environment.of_objects([own, config_map(SYSTEM, reserve__default="nodes")])
    using = load([("policy.yaml", policy)])
    allowed = [
        decide(from_object(pod(namespace)), using, None, "validate", environment).response.allowed
        for namespace in ("ml", "research")
    ]
    assert allowed == [True, False]


def test_policies_see_no_keys_of_namespaces() -> None:
    """Keys of other namespaces are removed, so they are not copied for each request."""
    parameters, _ = read_parameters(policies(), config_map(SYSTEM, namespace__research__mode="warn"))
    shown = parameters.object("research")
    assert shown is not None
    assert shown["data"]["mode"] == "warn"
    assert not [key for key in shown["data"] if key.startswith("namespace.")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            {"mode": "enfroce"},
            "data[mode]: 'enfroce' is not valid; use enforce or warn or audit or off (default",
        ),
        ({"reserve__default": "rack"}, "data[reserve.default]: 'rack' is not valid; use auto or domain or"),
        ({"reserve__whole_from": "0"}, "'0' is not valid; use a share above 0 and up to 1, such as 0.5"),
        ({"reserve__whole_from": "1.5"}, "'1.5' is not valid"),
        ({"namespace__research__mode": "on"}, "data[namespace.research.mode]: 'on' is not valid"),
        ({"namespace__Research__mode": "off"}, "data[namespace.Research.mode]: names no namespace"),
        ({"namespace__research": "off"}, "data[namespace.research]: names no namespace; the form is"),
        ({"reserve__defalt": "none"}, "there is no such parameter; is reserve.default meant?"),
        ({"node_affinity__weight": "lots"}, "data[node-affinity.weight]: 'lots' is not valid"),
        (
            {"namespace__ml__node_affinity__weight": "x"},
            "data[namespace.ml.node-affinity.weight]: 'x' is not",
        ),
    ],
)
def test_an_error_names_object_key_value_and_valid_values(words: Json, message: str) -> None:
    """Each error is one line."""
    _, (problem,) = read_parameters(policies(), config_map(SYSTEM, **words))
    assert problem.startswith("bayplan-system/ConfigMap/bayplan-parameters: data[")
    assert message in problem


def test_a_setting_is_checked_where_no_schema_lies_beside_the_policies() -> None:
    """Bayplan knows its settings; keys of policies without a schema are not checked."""
    _, (problem,) = read_parameters(PolicySet(), config_map(SYSTEM, mode="on", my__key="x"))
    assert "'on' is not valid" in problem


def test_a_key_that_is_nearly_a_setting_is_a_warning_where_no_schema_lies_beside_the_policies() -> None:
    """Without a schema it may be a key of a policy; with one it is an error."""
    data = config_map(SYSTEM, reserve__defualt="none", my__own="x", namespace__ml__mod="off")
    parameters, problems = read_parameters(PolicySet(), data)
    assert not problems
    assert parameters.warnings({}) == [
        "reserve.defualt: is no setting; is reserve.default meant?",
        "namespace.ml.mod: is no setting; is mode meant?",
    ]


def test_beside_a_wrong_key_the_others_count() -> None:
    """A replica that starts on an invalid ConfigMap uses the keys that are valid."""
    chosen = settings("ml", config_map(SYSTEM, mode="audit", reserve__default="rack"))
    assert (chosen.mode, chosen.reserve.mode) == ("audit", "auto")


def test_a_namespace_that_does_not_exist_is_a_warning() -> None:
    """The namespace may be created later."""
    parameters, problems = read_parameters(policies(), config_map(SYSTEM, namespace__gone__mode="off"))
    assert not problems
    assert parameters.warnings({"ml": {}}) == ["namespace.gone.mode: there is no namespace gone"]
    assert not parameters.warnings({"gone": {}})
    assert not parameters.warnings({}), "offline, where no Namespace is known, none is missing"


@pytest.mark.parametrize(("label", "warnings"), [(None, 0), ("off", 0), ("enforce", 1)])
def test_a_mode_that_contradicts_the_label_of_the_namespace_is_a_warning(
    label: str | None, warnings: int
) -> None:
    """The label takes precedence."""
    parameters, problems = read_parameters(policies(), config_map(SYSTEM, namespace__ml__mode="off"))
    labels = {"bayplan.dev/mode": label} if label else {}
    messages = parameters.warnings({"ml": {"metadata": {"name": "ml", "labels": labels}}})
    assert not problems
    assert len(messages) == warnings
    assert all(
        "has no effect, the namespace has the label bayplan.dev/mode: enforce" in text for text in messages
    )


@pytest.mark.parametrize("data", [None, [], "text", {"mode": None}, {"mode": ["audit"]}, {3: True}])
def test_data_of_any_shape_is_read_without_a_traceback(data: Any) -> None:
    """A file may contain any YAML."""
    parameters, problems = read_parameters(policies(), {**config_map(SYSTEM), "data": data})
    assert parameters.settings(lambda namespace: Settings(), "ml") == Settings()
    assert all("Traceback" not in problem for problem in problems)


def huge(keys: int = 10_000) -> Json:
    """A ConfigMap of nearly 1 MiB with this many keys, for as many namespaces."""
    data = {f"namespace.team-{number}.guaranteed-qos.enabled": "false" for number in range(keys)}
    return {**config_map(SYSTEM), "data": {**data, "mode": "audit", "nccl-env.ib-hca": "m" * 400_000}}


def test_each_of_ten_thousand_parameters_is_read_once() -> None:
    """Twice as many parameters take twice the work."""
    read_parameters(policies(), huge(10))  # what is worked out once for all
    five, ten = (calls(lambda keys=keys: read_parameters(policies(), huge(keys))) for keys in (5_000, 10_000))
    assert 1.9 < ten / five < 2.1
    assert not read_parameters(policies(), huge())[1]


def test_ten_thousand_parameters_cost_a_decision_nothing() -> None:
    """One with them calls as many functions as one with a single key, but for a few that merge its own."""
    many, _ = read_parameters(policies(), huge())
    few, _ = read_parameters(policies(), config_map(SYSTEM, guaranteed_qos__enabled="false"))

    def effort(parameters: Parameters) -> int:
        environment = Environment().with_parameters(parameters)

        def decided() -> None:
            decide(from_object(pod("team-7")), policies(), None, "mutate", environment)

        decided()  # the object of its namespace is made once
        return calls(decided)

    assert effort(many) <= 1.02 * effort(few) + 50


def test_settings_are_parsed_once_for_each_namespace_with_keys_of_its_own() -> None:
    """A list of a thousand node pools is not parsed for each request."""
    pools = "\n".join(f"pool-{number}: nodes=8 nvidia.com/gpu=8" for number in range(1_000))
    words = {"growing__pools": pools, "namespace__research__mode": "warn"}
    environment = Environment.of_objects([config_map(SYSTEM, **words)]).with_policy_parameters(policies())
    first = environment.settings("ml")
    assert len(first.growing) == 1_000
    assert environment.settings("inference") is environment.settings("ml") is first
    assert environment.settings("research") is environment.settings("research")
    assert environment.settings("research").mode == "warn"


@pytest.mark.parametrize("key", ["mode", "node-affinity.weight", "growing.pools"])
def test_a_long_wrong_value_is_truncated_in_the_error(key: str) -> None:
    """The error stays one readable line."""
    _, (problem,) = read_parameters(policies(), {**config_map(SYSTEM), "data": {key: "?" * 1_000_000}})
    assert "is not valid" in problem
    assert len(problem) < 500


def test_of_ten_thousand_wrong_keys_the_first_are_listed() -> None:
    """The error says how many more there are, and the work grows linearly."""

    def wrong(keys: int) -> Json:
        return {**config_map(SYSTEM), "data": {f"x{number}": "" for number in range(keys)}}

    few, many = (calls(lambda keys=keys: read_parameters(policies(), wrong(keys))) for keys in (100, 10_000))
    assert many < 110 * few
    _, problems = read_parameters(policies(), wrong(10_000))
    assert len(problems) == MOST_TOLD + 1
    assert problems[-1] == f"and {10_000 - MOST_TOLD} more"
