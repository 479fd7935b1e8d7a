"""The doctor reports differences between modes and the API server's selectors while all replicas still
run.
"""

from __future__ import annotations

from typing import Any

import pytest

from webhook.admission.configuration.settings import Settings
from webhook.cli.common.inputs import shipped
from webhook.files.reader import objects
from webhook.kube.state.findings import CheckFinding
from webhook.kube.state.mode_findings import mode_findings

Json = dict[str, Any]
FILES = {"manifests": "70-webhooks.yaml", "overlays/enforce": "components/enforce/webhooks.yaml"}


def hooks(kind: str) -> Json:
    """The mutating configuration of an installation, its selectors those of the overlay where it has one."""
    mutating = objects([str(shipped("manifests") / FILES["manifests"])])[0].value
    patches = objects([str(shipped("manifests") / FILES[kind])])[0].value if kind in FILES else {}
    by_name = {hook["name"]: hook for hook in patches["webhooks"]}
    return {"webhooks": [{**hook, **by_name.get(hook["name"], {})} for hook in mutating["webhooks"]]}


def space(name: str, mode: str | None = None) -> Json:
    """A namespace, with the label or without."""
    return {"metadata": {"name": name, "labels": {} if mode is None else {"bayplan.dev/mode": mode}}}


def findings(kind: str, default: Any, *spaces: Json, **own: Any) -> list[CheckFinding]:
    """Of these namespaces in an installation whose settings say `default`, or `own` for one namespace."""
    return mode_findings(spaces, hooks(kind), lambda name: Settings(mode=own.get(name, default)))


ALL = [space("a"), space("b", "enforce"), space("c", "audit"), space("d", "warn"), space("e", "off")]


@pytest.mark.parametrize(("kind", "default"), [("manifests", "audit"), ("overlays/enforce", "enforce")])
def test_what_ships_agrees_with_itself(kind: str, default: str) -> None:
    """Whatever the labels say; system namespaces are not looked at."""
    (line,) = findings(kind, default, *ALL, space("kube-system"))
    assert line.grade == "ok"
    assert "1 off" in line.message


def test_enforced_by_the_config_map_alone_is_told() -> None:
    """While no replica answers, nothing would be refused there."""
    (line,) = findings("manifests", "enforce", *ALL)
    assert (line.grade, line.message.split(":")[0]) == ("warn", "a")
    assert "pass there unplanned" in line.message
    assert "overlays/enforce" in line.mend
    (line,) = findings("manifests", "audit", *ALL, space("f"), f="enforce")
    assert line.message.startswith("f: enforced, and yet GPU workloads pass")


def test_webhooks_that_were_installed_open_are_told_with_the_upgrade_that_closes_them() -> None:
    """As Helm installs them: a namespace is enforced by its label, and would not be without a replica."""
    webhooks = [{**webhook, "failurePolicy": "Ignore"} for webhook in hooks("manifests")["webhooks"]]
    (line,) = mode_findings([space("b", "enforce")], {"webhooks": webhooks}, lambda _: Settings(mode="audit"))
    assert line.message.startswith("b: labelled enforce, and yet GPU workloads pass there unplanned")
    assert "helm upgrade with --reset-then-reuse-values" in line.mend
    (line,) = mode_findings([space("a")], {"webhooks": webhooks}, lambda _: Settings(mode="enforce"))
    assert line.mend.startswith("label them bayplan.dev/mode=enforce")


def test_audited_by_the_config_map_alone_is_told() -> None:
    """The overlay refuses GPU workloads where only an audit was intended."""
    (line,) = findings("overlays/enforce", "audit", *ALL)
    assert line.message.startswith("a: not enforced, and yet GPU workloads are refused there")


def test_an_enforced_namespace_that_no_webhook_selects_is_told() -> None:
    """As after an edit of a selector."""
    (line,) = mode_findings([space("b", "enforce")], {"webhooks": []}, lambda _: Settings())
    assert "no webhook is asked" in line.message


def test_a_label_that_is_no_mode_is_told_with_the_valid_ones() -> None:
    """Of many the first few, with the number of the others."""
    wrong = [space(f"w{number}", "enforced") for number in range(5)]
    (line,) = findings("manifests", "audit", *wrong)
    assert 'namespace w0: label bayplan.dev/mode is "enforced"; valid are enforce, warn' in line.message
    assert line.message.endswith("; and 2 more")
