"""The parameter `pack`: the scheduling system that policies write for, and which pack fits a cluster."""

from __future__ import annotations

import pytest

from planner.model.schedulers import KAI, KUEUE, RUNAI, SchedulersSeen
from tests.policies.helpers import policies
from tests.webhook.admission.configuration.test_parameters import beside, changed_by, config_map, settings
from webhook.admission.configuration.parameters import read_parameters
from webhook.kube.state.scheduling_findings import pack_finding
from webhook.policy.model.packs import PACKS, fitting

FOR_KAI = {"kai-queue", "scheduler-name"}
"""What changes a GPU pod for KAI, where no cluster says that there is none."""


@pytest.mark.parametrize(
    ("pack", "changed"),
    [("auto", FOR_KAI), ("kai", FOR_KAI), ("kueue", set()), ("runai", {"scheduler-name"}), ("plain", set())],
)
def test_a_pack_says_for_whom_a_gpu_pod_is_changed(pack: str, changed: set[str]) -> None:
    """Policies that are not about a scheduler, such as QoS, stay enabled."""
    by = changed_by("team-a", config_map(pack=pack))
    assert by & {*FOR_KAI, "kai-topology", "kueue-queue"} == changed
    assert "guaranteed-qos" in by


@pytest.mark.parametrize("pack", ["kueue", "kai"])
def test_a_default_queue_of_kueue_s_is_given_in_its_pack_alone(pack: str) -> None:
    """The pack of another system disables the policy folder."""
    is_set = "kueue-queue" in changed_by("team-a", config_map(pack=pack, kueue_topology__queue="main"))
    assert is_set is (pack == "kueue")


def test_the_cluster_s_own_keys_count_before_the_pack_and_the_file_s_after_it() -> None:
    """The shipped file sets every default, so a pack below it would have no effect."""
    in_file = config_map(kai_topology__enabled="true")
    own = config_map("bayplan-system", pack="plain", scheduler_name__name="volcano")
    parameters, problems = read_parameters(beside(in_file), own)
    assert problems == ()
    data = (parameters.object("") or {})["data"]
    assert (data["kai-topology.enabled"], data["scheduler-name.name"]) == ("false", "volcano")
    assert parameters.origin("kai-topology.enabled") == "pack plain"
    assert parameters.origin("scheduler-name.name") == "bayplan-system/ConfigMap/bayplan-parameters"


def test_the_cluster_s_pack_counts_before_the_file_s() -> None:
    """The key `pack` follows the same precedence as others."""
    own = config_map("bayplan-system", pack="auto")
    assert settings("team-a", own, config_map(pack="plain")).pack == "auto"
    assert changed_by("team-a", own, in_file=config_map(pack="plain")) >= FOR_KAI


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"pack": "kia"}, "'kia' is not valid; use auto or kai or kueue or runai or plain"),
        ({"namespace__a__pack": "kai"}, "not to a namespace; use pack"),
    ],
)
def test_an_unknown_pack_is_a_problem(entry: dict[str, str], message: str) -> None:
    """The error lists the known packs; a pack cannot be set for one namespace."""
    _, (problem,) = read_parameters(policies(), config_map(**entry))
    assert message in problem


def test_a_pack_sets_only_known_parameters() -> None:
    """Each value is valid for its parameter."""
    rules = policies().rules
    for pack in PACKS.values():
        assert [rules.fault(key, value) for key, value in pack.items() if rules.fault(key, value)] == []


@pytest.mark.parametrize(
    ("systems", "pack"),
    [((), "plain"), ((KAI,), "kai"), ((KUEUE,), "kueue"), ((RUNAI,), "runai"), ((KAI, KUEUE), "auto")],
)
def test_the_pack_that_fits_is_that_of_the_system_in_the_cluster(systems: tuple[str, ...], pack: str) -> None:
    """If there are several systems, each of their packs fits."""
    assert fitting(systems) == pack
    assert pack_finding(_shown(*systems), pack).grade == "ok"


@pytest.mark.parametrize(
    ("systems", "pack", "mend"),
    [((KUEUE,), "kai", "pack: kueue"), ((), "runai", "pack: plain"), ((KAI,), "plain", "pack: kai")],
)
def test_doctor_warns_of_a_pack_that_does_not_fit(systems: tuple[str, ...], pack: str, mend: str) -> None:
    """The warning names the pack that does."""
    finding = pack_finding(_shown(*systems), pack)
    assert finding.grade == "warn"
    assert finding.mend.startswith(f"{mend} in the ConfigMap bayplan-parameters")


@pytest.mark.parametrize(
    ("systems", "choice"), [((), "pack: plain"), ((KAI, KUEUE), "pack: kai, kueue or runai")]
)
def test_doctor_names_the_parameter_that_chooses_a_pack(systems: tuple[str, ...], choice: str) -> None:
    """Where none is chosen, with the object that it is a key of."""
    finding = pack_finding(_shown(*systems), "auto")
    assert finding.grade == "ok"
    assert f"; {choice} in the ConfigMap bayplan-parameters " in finding.message


def _shown(*systems: str) -> SchedulersSeen:
    return SchedulersSeen(dict.fromkeys(systems, "a kind"))
