"""The templates of manifests/chart, made from the plain manifests: `python -m tests.manifests.generate`.

Each template is the text of a manifest with a value of values.yaml where a user may want another; what is
not named here is in both the same. What kustomize does with a component, the chart does with a value. Written
by hand are Chart.yaml, values.yaml, values.schema.json and NOTES.txt; README.md lists values.yaml as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.manifests import monitoring

Edits = tuple[tuple[str, str], ...]
"""Text that stands once in a manifest, and what stands for it in the template."""

MANIFESTS = Path(__file__).parents[2] / "manifests"
COMPONENTS = MANIFESTS / "components"
TEMPLATES = MANIFESTS / "chart" / "templates"

HEADER = "{{- /* Written by `python -m tests.manifests.generate` from the plain manifests. */}}\n"
CERT_MANAGER = 'eq .Values.certificates "cert-manager"'
OWN_CERTIFICATES = 'eq .Values.certificates "own"'
TAINT = 'eq .Values.fence "taint"'
GIT = 'eq .Values.policies.source "git"'
CONFIG_MAP = 'eq .Values.policies.source "configMap"'


def when(condition: str, text: str) -> str:
    """The text where the condition holds; both begin and end with whole lines."""
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


def optional_field(value: str, key: str, indent: int) -> str:
    """A field with the value as YAML, left out where the value is empty."""
    space = " " * indent
    return (
        f"{space}{{{{- with .Values.{value} }}}}\n{space}{key}:\n"
        f"{space}  {{{{- toYaml . | nindent {indent + 2} }}}}\n{space}{{{{- end }}}}\n"
    )


def edited(text: str, edits: Iterable[tuple[str, str]]) -> str:
    """The text after all edits. Raises `ValueError` where one does not find its text just once."""
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"stands {text.count(old)} times, not once: {old!r}")
        text = text.replace(old, new)
    return text


def _part(component: str, first: str, last: str = "") -> str:
    """The lines of a component's deployment.yaml between two others, or from the first to the end."""
    text = (COMPONENTS / component / "deployment.yaml").read_text()
    _, _, rest = text.partition(first)
    return rest.partition(last)[0] if last else rest


def _extra_rows(value: str) -> str:
    """Further rows of a list in a container."""
    space = " " * 12
    lines = f"{{{{- with .Values.{value} }}}}", "{{- toYaml . | nindent 12 }}", "{{- end }}"
    return "".join(f"{space}{line}\n" for line in lines)


_SECRET_MOUNT = "            - {name: git-secret, mountPath: /etc/git-secret, readOnly: true}\n"
_SECRET_VOLUME = """\
        - name: git-secret
          secret: {secretName: {{ .Values.policies.git.secret }}, defaultMode: 0440}
"""
_CONFIG_MAP_VOLUME = """\
        - name: policies
          configMap: {name: {{ .Values.policies.configMap }}}
"""

_GIT_SYNC: Edits = (
    (
        "git-sync/git-sync:v4.7.1  # upstream's path; name the registry that your cluster pulls from\n",
        "{{ .Values.policies.git.image | quote }}\n",
    ),
    ('"https://git.example.com/platform/bayplan-policies"', "{{ .Values.policies.git.repository | quote }}"),
    ("value: main}\n", "value: {{ .Values.policies.git.ref | quote }}}\n" + _extra_rows("policies.git.env")),
    ("--period=30s", "--period={{ .Values.policies.git.period }}"),
    (
        "            - {name: git-sync-tmp, mountPath: /tmp}\n",
        "            - {name: git-sync-tmp, mountPath: /tmp}\n"
        + when(".Values.policies.git.secret", _SECRET_MOUNT),
    ),
)


def _sidecar() -> str:
    """git-sync beside the webhook."""
    return "      initContainers:\n" + edited(
        _part("git-sync", "      initContainers:\n", "      containers:\n"), _GIT_SYNC
    )


_PRIORITY = """\
      {{- with .Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
"""
_SCHEDULING = (
    optional_field("image.pullSecrets", "imagePullSecrets", 6)
    + _PRIORITY
    + optional_field("nodeSelector", "nodeSelector", 6)
    + optional_field("tolerations", "tolerations", 6)
    + optional_field("affinity", "affinity", 6)
)


def _extra_metadata(name: str) -> Edits:
    """Further annotations and labels of the pods with a name."""
    labels = f"    metadata:\n      labels:\n        app.kubernetes.io/name: {name}\n"
    annotations = optional_field("podAnnotations", "annotations", 6)
    further = (
        "        {{- with .Values.podLabels }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"
    )
    return ((labels, labels.replace("      labels:\n", annotations + "      labels:\n") + further),)


_IMAGE = """\
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
          {{- with .Values.image.digest }}@{{ . }}{{ end }}"
          {{- with .Values.image.pullPolicy }}
          imagePullPolicy: {{ . }}
          {{- end }}
"""
_FOLDER = "{{ with .Values.policies.git.folder }}/current/{{ . }}{{ end }}"
_FILES = """\
            - --tls-cert=/certs/tls.crt
            - --tls-key=/certs/tls.key
"""
_RESOURCES = """\
          resources:
            requests: {cpu: 500m, memory: 512Mi}
            limits: {memory: 2Gi}
"""
_HTTPS = "          ports:\n            - {name: https, "
_SPREAD = (MANIFESTS / "40-deployment.yaml").read_text()
_SPREAD = _SPREAD[
    _SPREAD.index("      topologySpreadConstraints:\n") : _SPREAD.index("      securityContext:\n")
]

_DEPLOYMENT: Edits = (
    *_extra_metadata("bayplan"),
    ("  replicas: 3\n", "  replicas: {{ .Values.replicas }}\n"),
    (_SPREAD, optional_field("topologySpreadConstraints", "topologySpreadConstraints", 6)),
    (
        "      containers:\n",
        _SCHEDULING + when(GIT, _sidecar()) + "      containers:\n",
    ),
    ("          image: bayplan:0.1.0\n", _IMAGE),
    (
        "            - --certificate-secret=bayplan-tls\n",
        when(OWN_CERTIFICATES, "            - --certificate-secret=bayplan-tls\n")
        + when(CERT_MANAGER, _FILES),
    ),
    ("--mode=audit", "--mode={{ .Values.mode }}"),
    ("--workers=1", "--workers={{ .Values.workers }}"),
    (
        "            - -p=/policies\n",
        f"            - -p=/policies{{{{ if {GIT} }}}}{_FOLDER}{{{{ end }}}}\n"
        + when(TAINT, "            - --fence=taint\n")
        + _extra_rows("extraArgs"),
    ),
    (_HTTPS, optional_field("env", "env", 10) + _HTTPS),
    (_RESOURCES, optional_field("resources", "resources", 10)),
    (
        "            - {name: tmp, mountPath: /tmp}\n",
        "            - {name: tmp, mountPath: /tmp}\n"
        + when(CERT_MANAGER, "            - {name: certs, mountPath: /certs, readOnly: true}\n")
        + when(
            f"or ({GIT}) ({CONFIG_MAP})",
            "            - {name: policies, mountPath: /policies, readOnly: true}\n",
        ),
    ),
    (
        "          emptyDir: {medium: Memory, sizeLimit: 16Mi}\n",
        "          emptyDir: {medium: Memory, sizeLimit: 16Mi}\n"
        + when(CERT_MANAGER, _part("cert-manager", "      volumes:\n"))
        + when(
            GIT,
            _part("git-sync", "      volumes:\n") + when(".Values.policies.git.secret", _SECRET_VOLUME),
        )
        + when(CONFIG_MAP, _CONFIG_MAP_VOLUME),
    ),
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
    "30-rbac.yaml": ((_SERVICE_ACCOUNT, _SERVICE_ACCOUNT + _ACCOUNT_ANNOTATIONS),),
    "20-crds.yaml": tuple(
        (f"  name: {name}.bayplan.dev\n", f"  name: {name}.bayplan.dev\n{KEPT}")
        for name in ("reservations", "topologies")
    ),
    "38-parameters.yaml": ((_LAST_PARAMETER, _LAST_PARAMETER + _PARAMETERS),),
    "40-deployment.yaml": _DEPLOYMENT,
    # A budget of as many as there are replicas would let no node be drained.
    "55-pdb.yaml": (("minAvailable: 2", f"minAvailable: {_BUDGET}"),),
    "60-networkpolicy.yaml": (
        ("        - {port: 443, protocol: TCP}\n        - {port: 6443, protocol: TCP}\n", _EGRESS),
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
    *_extra_metadata("bayplan-ui"),
    (
        "      containers:\n",
        _SCHEDULING + "      containers:\n",
    ),
    ("          image: bayplan:0.1.0\n", _IMAGE),
    (
        _RESOURCES.replace("500m", "100m"),
        optional_field("ui.resources", "resources", 10),
    ),
    (
        f"---\n{_UI_POLICY}",
        when(".Values.networkPolicy.enabled", "---\n" + edited(_UI_POLICY, EDITS["60-networkpolicy.yaml"])),
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
    files["36-cert-manager.yaml"] = HEADER + when(CERT_MANAGER, _cert_manager())
    files["80-ui.yaml"] = HEADER + when(
        ".Values.ui.enabled", (COMPONENTS / "ui" / "rbac.yaml").read_text() + "---\n" + edited(_UI, UI)
    )
    for name, edits in MONITORING.items():
        text = monitoring.literal((monitoring.COMPONENT / f"{name}.yaml").read_text())
        condition = f".Values.monitoring.{SWITCHES[name]}.enabled"
        files[f"{name}.yaml"] = HEADER + when(condition, edited(text, edits))
    return files
