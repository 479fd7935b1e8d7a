"""The templates of manifests/chart, made from the plain manifests: `python -m tests.manifests.generate`.

Each template is the text of a manifest with a value of values.yaml where a user may want another; what is
not named here is in both the same. What kustomize does with a component, the chart does with a value. Written
by hand are Chart.yaml, values.yaml, values.schema.json and NOTES.txt; README.md lists values.yaml as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.manifests import monitoring
from tests.manifests.chart_deployment import (
    CERT_MANAGER,
    COMPONENTS,
    DEPLOYMENT,
    HEADER,
    IMAGE,
    MANIFESTS,
    OWN_CERTIFICATES,
    OWN_POLICIES,
    RESOURCES,
    SCHEDULING,
    TAINT,
    Edits,
    edited,
    extra_metadata,
    optional_field,
    when,
)

_PARAMETERS = """\
  {{- with .Values.parameters }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
"""
_LAST_PARAMETER = '  # namespace.research.guaranteed-qos.enabled: "false"\n'
_BUDGET = "{{ min .Values.podDisruptionBudget.minAvailable (sub .Values.replicas 1) }}"
_EGRESS = """\
        {{- range .Values.networkPolicy.egressPorts }}
        - {port: {{ . }}, protocol: TCP}
        {{- end }}
"""
_EGRESS_EDIT = ("        - {port: 443, protocol: TCP}\n        - {port: 6443, protocol: TCP}\n", _EGRESS)

# Pods on a host's network need `privileged`.
_NAMESPACE: Edits = tuple(
    (
        f"{level}: restricted",
        f'{level}: {{{{ ternary "privileged" "restricted" .Values.hostNetwork }}}}',
    )
    for level in ("enforce", "audit", "warn")
)

# The release owns them: whatever lies in its namespace can go with it.
_POLICIES = """\
# The policies that the values give. The kubelet brings a change to the replicas within about a minute.
apiVersion: v1
kind: ConfigMap
metadata:
  name: bayplan-additional-policies
  namespace: bayplan-system
  labels:
    app.kubernetes.io/name: bayplan
data:
  {{- range $name, $text := .Values.policies.additional }}
  {{ printf "%s.yaml" $name | quote }}: {{ $text | toJson }}
  {{- end }}
"""

_INGRESS = """\
        - {port: {{ .Values.ports.webhook }}, protocol: TCP}
      {{- with .Values.networkPolicy.apiServers }}
      from:
        {{- range . }}
        - ipBlock: {cidr: {{ . | quote }}}
        {{- end }}
      {{- end }}
    - ports:
        - {port: {{ .Values.ports.probes }}, protocol: TCP}
      {{- with .Values.networkPolicy.metricsFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
"""

KEPT = """\
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
"""

_SERVICE_ACCOUNT = """\
kind: ServiceAccount
metadata:
  name: bayplan
  namespace: bayplan-system
"""
_ACCOUNT_ANNOTATIONS = optional_field("serviceAccount.annotations", "annotations", 2)

EDITS: dict[str, Edits] = {
    "10-namespace.yaml": _NAMESPACE,
    "30-rbac.yaml": ((_SERVICE_ACCOUNT, _SERVICE_ACCOUNT + _ACCOUNT_ANNOTATIONS),),
    "20-crds.yaml": tuple(
        (f"  name: {name}.bayplan.dev\n", f"  name: {name}.bayplan.dev\n{KEPT}")
        for name in ("reservations", "topologies")
    ),
    "38-parameters.yaml": ((_LAST_PARAMETER, _LAST_PARAMETER + _PARAMETERS),),
    "40-deployment.yaml": DEPLOYMENT,
    # A budget of as many as there are replicas would let no node be drained.
    "55-pdb.yaml": (("minAvailable: 2", f"minAvailable: {_BUDGET}"),),
    "60-networkpolicy.yaml": (
        (
            "        - {port: 8443, protocol: TCP}\n    - ports:\n        - {port: 8081, protocol: TCP}\n",
            _INGRESS,
        ),
        _EGRESS_EDIT,
    ),
}
"""The values of each manifest that has any."""

CONDITIONS: dict[str, str] = {
    # A release that lies in this namespace itself cannot make it: Helm stores the release there first.
    "10-namespace.yaml": 'ne .Release.Namespace "bayplan-system"',
    "35-certificates.yaml": OWN_CERTIFICATES,
    "55-pdb.yaml": ".Values.podDisruptionBudget.enabled",
    "60-networkpolicy.yaml": ".Values.networkPolicy.enabled",
}
"""Manifests that a value leaves out."""

ADDED: dict[str, tuple[str, Path]] = {
    "33-taint-fence.yaml": (TAINT, COMPONENTS / "taint-fence" / "rbac.yaml"),
    "34-defragmentation.yaml": (".Values.defragmentation", COMPONENTS / "defragmentation" / "rbac.yaml"),
}
"""Templates of what components add, each with its condition."""

_CERTIFICATES = (COMPONENTS / "cert-manager" / "certificates.yaml").read_text()
_ISSUER = "  issuerRef: {name: bayplan, kind: Issuer}\n"


def _cert_manager() -> str:
    """The Certificate of the webhook, and, where no issuer of the user's signs it, the CA that does."""
    *own, serving = _CERTIFICATES.split("---\n")
    reference = (
        "  issuerRef:\n    {{- .Values.certManager.issuerRef | default (dict "
        '"name" "bayplan" "kind" "Issuer") | toYaml | nindent 4 }}\n'
    )
    return when("not .Values.certManager.issuerRef", "---\n".join([*own, ""])) + edited(
        serving, ((_ISSUER, reference),)
    )


_UI = (COMPONENTS / "ui" / "page.yaml").read_text()
_UI_POLICY = _UI[_UI.index("apiVersion: networking.k8s.io/v1\n") :]
UI: Edits = (
    *extra_metadata("bayplan-ui"),
    (
        "      containers:\n",
        SCHEDULING + "      containers:\n",
    ),
    ("          image: bayplan:0.1.0\n", IMAGE),
    (
        RESOURCES.replace("500m", "100m"),
        optional_field("ui.resources", "resources", 10),
    ),
    (
        f"---\n{_UI_POLICY}",
        when(".Values.networkPolicy.enabled", "---\n" + edited(_UI_POLICY, (_EGRESS_EDIT,))),
    ),
)
"""The live page of the component, with the values that it has, and those that it shares with the replicas."""

_OWN_LABEL = "    app.kubernetes.io/name: bayplan\n"


def _labels(value: str) -> str:
    """Further labels of an object."""
    space = " " * 4
    lines = f"{{{{- with .Values.{value} }}}}", "{{- toYaml . | nindent 4 }}", "{{- end }}"
    return "".join(f"{space}{line}\n" for line in lines)


MONITORING: dict[str, Edits] = {
    "podmonitor": (
        (f"  labels:\n{_OWN_LABEL}", f"  labels:\n{_OWN_LABEL}{_labels('monitoring.podMonitor.labels')}"),
        ("interval: 30s", "interval: {{ .Values.monitoring.podMonitor.interval }}"),
    ),
    "rules": ((_OWN_LABEL, _OWN_LABEL + _labels("monitoring.rules.labels")),),
    "dashboard": (('    grafana_dashboard: "1"\n', _labels("monitoring.dashboard.labels")),),
}
"""What the component makes, a template each, with the values that it has."""
SWITCHES = {"podmonitor": "podMonitor", "rules": "rules", "dashboard": "dashboard"}
"""The value `monitoring.NAME.enabled` that switches each on."""

WEBHOOKS = "70-webhooks.yaml"
WEBHOOKS_HEAD = """\
{{- /*
Webhooks that fail closed are installed open, and closed by the next upgrade: while they are installed no
replica answers yet, and nothing may be refused for that. `helm template`, which sees no cluster, closes them.
*/}}
{{- $failure := .Values.webhooks.failurePolicy }}
{{- if eq $failure "auto" }}
{{- $failure = "Fail" }}
{{- if lookup "v1" "Namespace" "" "kube-system" }}
{{- $deployment := lookup "apps/v1" "Deployment" "bayplan-system" "bayplan" | default dict }}
{{- if not (dig "status" "readyReplicas" 0 $deployment) }}
{{- $failure = "Ignore" }}
{{- end }}
{{- end }}
{{- end }}
"""

INJECTED = """\
  {{- if eq .Values.certificates "cert-manager" }}
  annotations:
    cert-manager.io/inject-ca-from: bayplan-system/bayplan
  {{- end }}
"""


def _webhooks(text: str, rows: Iterable[tuple[str, str]]) -> str:
    """The webhooks' template; `rows`: a selector's row for the label, in the mode audit and in enforce."""
    for audited, enforced in rows:
        if audited not in text:
            raise ValueError(f"stands nowhere: {audited!r}")
        either = (
            f'{{{{- if eq .Values.mode "enforce" }}}}\n{enforced}{{{{- else }}}}\n{audited}{{{{- end }}}}\n'
        )
        text = text.replace(audited, either)
    labels = "    app.kubernetes.io/name: bayplan\n"
    text = text.replace(labels, labels + INJECTED)
    return WEBHOOKS_HEAD + text.replace("failurePolicy: Fail\n", "failurePolicy: {{ $failure }}\n")


def templates(rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Each template that is made from a manifest, by the name of its file.

    Raises `ValueError` where a manifest no longer has what an edit replaces.
    """
    files = {}
    for path in sorted(MANIFESTS.glob("[0-9]*.yaml")):
        text = path.read_text()
        if "{{" in text:
            raise ValueError(f"{path}: Helm would read its braces as a template")
        text = _webhooks(text, rows) if path.name == WEBHOOKS else edited(text, EDITS.get(path.name, ()))
        condition = CONDITIONS.get(path.name)
        files[path.name] = HEADER + (when(condition, text) if condition else text)
    for name, (condition, path) in ADDED.items():
        files[name] = HEADER + when(condition, path.read_text())
    files["39-additional-policies.yaml"] = HEADER + when(OWN_POLICIES, _POLICIES)
    files["36-cert-manager.yaml"] = HEADER + when(CERT_MANAGER, _cert_manager())
    files["80-ui.yaml"] = HEADER + when(
        ".Values.ui.enabled", (COMPONENTS / "ui" / "rbac.yaml").read_text() + "---\n" + edited(_UI, UI)
    )
    for name, edits in MONITORING.items():
        text = monitoring.literal((monitoring.COMPONENT / f"{name}.yaml").read_text())
        condition = f".Values.monitoring.{SWITCHES[name]}.enabled"
        files[f"{name}.yaml"] = HEADER + when(condition, edited(text, edits))
    return files
