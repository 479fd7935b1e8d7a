"""The Deployment of the chart: its values, edit by edit, and what every template is made with.

Begin with `DEPLOYMENT`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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
FROM_IMAGE_OR_GIT = 'ne .Values.policies.source "none"'
OWN_POLICIES = ".Values.policies.additional"


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


def _extra_rows(value: str, indent: int = 12) -> str:
    """Further rows of a list: in a container, or with `indent` 8 in the pod."""
    space = " " * indent
    lines = f"{{{{- with .Values.{value} }}}}", f"{{{{- toYaml . | nindent {indent} }}}}", "{{- end }}"
    return "".join(f"{space}{line}\n" for line in lines)


_SECRET_MOUNT = "            - {name: git-secret, mountPath: /etc/git-secret, readOnly: true}\n"
_SECRET_VOLUME = """\
        - name: git-secret
          secret: {secretName: {{ .Values.policies.git.secret }}, defaultMode: 0440}
"""
_OWN_VOLUME = """\
        - name: additional-policies
          configMap: {name: bayplan-additional-policies}
"""

_GIT_SYNC: Edits = (
    (
        "git-sync/git-sync:v4.7.1  # upstream's path; name the registry that your cluster pulls from\n",
        "{{ .Values.policies.git.image | quote }}\n",
    ),
    ('"https://git.example.com/platform/bayplan-policies"', "{{ .Values.policies.git.repository | quote }}"),
    ("value: main}\n", "value: {{ .Values.policies.git.ref | quote }}}\n" + _extra_rows("policies.git.env")),
    ("--http-bind=:1234", "--http-bind=:{{ .Values.ports.gitSync }}"),
    ("containerPort: 1234", "containerPort: {{ .Values.ports.gitSync }}"),
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
SCHEDULING = (
    optional_field("image.pullSecrets", "imagePullSecrets", 6)
    + _PRIORITY
    + optional_field("nodeSelector", "nodeSelector", 6)
    + optional_field("tolerations", "tolerations", 6)
    + optional_field("affinity", "affinity", 6)
)


def extra_metadata(name: str) -> Edits:
    """Further annotations and labels of the pods with a name."""
    labels = f"    metadata:\n      labels:\n        app.kubernetes.io/name: {name}\n"
    annotations = optional_field("podAnnotations", "annotations", 6)
    further = (
        "        {{- with .Values.podLabels }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"
    )
    return ((labels, labels.replace("      labels:\n", annotations + "      labels:\n") + further),)


IMAGE = """\
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
RESOURCES = """\
          resources:
            requests: {cpu: 500m, memory: 512Mi}
            limits: {memory: 2Gi}
"""
_HTTPS = "          ports:\n            - {name: https, "
_SPREAD = (MANIFESTS / "40-deployment.yaml").read_text()
_SPREAD = _SPREAD[
    _SPREAD.index("      topologySpreadConstraints:\n") : _SPREAD.index("      securityContext:\n")
]

_STRATEGY = "    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}\n"
_STRATEGY_BY_VALUES = f"""\
    {{{{- if and .Values.hostNetwork (gt (int .Values.replicas) 1) }}}}
    rollingUpdate: {{maxUnavailable: 1, maxSurge: 0}}
    {{{{- else }}}}
{_STRATEGY}    {{{{- end }}}}
"""
_HOST_NETWORK = """\
      {{- if .Values.hostNetwork }}
      hostNetwork: true
      {{- end }}
      {{- with .Values.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" .Values.hostNetwork) }}
      dnsPolicy: {{ . }}
      {{- end }}
"""

# A listener of the replica or of git-sync that finds its port taken would end its container again and again.
_PORTS = f"""\
{{{{- $ports := list (int .Values.ports.webhook) (int .Values.ports.probes) }}}}
{{{{- if {GIT} }}}}{{{{ $ports = append $ports (int .Values.ports.gitSync) }}}}{{{{ end }}}}
{{{{- if ne (len $ports) (len (uniq $ports)) }}}}
{{{{- fail (printf "ports: two listeners of a pod on one port (%s)" (join ", " $ports)) }}}}
{{{{- end }}}}
"""

DEPLOYMENT: Edits = (
    ("apiVersion: apps/v1\n", _PORTS + "apiVersion: apps/v1\n"),
    *extra_metadata("bayplan"),
    # On the network of its node a new replica finds no port free beside an old one.
    (_STRATEGY, _STRATEGY_BY_VALUES),
    ("--port=8443", "--port={{ .Values.ports.webhook }}"),
    ("--probe-port=8081", "--probe-port={{ .Values.ports.probes }}"),
    ("containerPort: 8443", "containerPort: {{ .Values.ports.webhook }}"),
    ("containerPort: 8081", "containerPort: {{ .Values.ports.probes }}"),
    ("  replicas: 3\n", "  replicas: {{ .Values.replicas }}\n"),
    (_SPREAD, optional_field("topologySpreadConstraints", "topologySpreadConstraints", 6)),
    (
        "      containers:\n",
        _HOST_NETWORK + SCHEDULING + when(GIT, _sidecar()) + "      containers:\n",
    ),
    ("          image: bayplan:0.1.0\n", IMAGE),
    (
        "            - --certificate-secret=bayplan-tls\n",
        when(OWN_CERTIFICATES, "            - --certificate-secret=bayplan-tls\n")
        + when(CERT_MANAGER, _FILES),
    ),
    ("--mode=audit", "--mode={{ .Values.mode }}"),
    ("--workers=1", "--workers={{ .Values.workers }}"),
    (
        "            - -p=/policies\n",
        when(FROM_IMAGE_OR_GIT, f"            - -p=/policies{{{{ if {GIT} }}}}{_FOLDER}{{{{ end }}}}\n")
        + when(OWN_POLICIES, "            - -p=/additional-policies\n")
        + when(TAINT, "            - --fence=taint\n")
        + _extra_rows("extraArgs"),
    ),
    (_HTTPS, optional_field("env", "env", 10) + _HTTPS),
    (RESOURCES, optional_field("resources", "resources", 10)),
    (
        "            - {name: tmp, mountPath: /tmp}\n",
        "            - {name: tmp, mountPath: /tmp}\n"
        + when(CERT_MANAGER, "            - {name: certs, mountPath: /certs, readOnly: true}\n")
        + when(GIT, "            - {name: policies, mountPath: /policies, readOnly: true}\n")
        + when(
            OWN_POLICIES,
            "            - {name: additional-policies, mountPath: /additional-policies, readOnly: true}\n",
        )
        + _extra_rows("extraVolumeMounts"),
    ),
    (
        "          emptyDir: {medium: Memory, sizeLimit: 16Mi}\n",
        "          emptyDir: {medium: Memory, sizeLimit: 16Mi}\n"
        + when(CERT_MANAGER, _part("cert-manager", "      volumes:\n"))
        + when(
            GIT,
            _part("git-sync", "      volumes:\n") + when(".Values.policies.git.secret", _SECRET_VOLUME),
        )
        + when(OWN_POLICIES, _OWN_VOLUME)
        + _extra_rows("extraVolumes", 8),
    ),
)
