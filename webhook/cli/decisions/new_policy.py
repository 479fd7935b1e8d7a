"""`bayplan policies new`: writes a policy, its tests, and the JSON schemas by which editors check both
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.model.errors import InputError, Where
from webhook.cli.common import inputs

SCHEMAS = {"policy": "policy.schema.json", "tests": "tests.schema.json"}
"""The files of the shipped JSON schemas, by the argument of `policies schema`."""


NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Matches the name of a policy (an RFC 1123 label), which is also the name of its folder."""


_HEAD = """\
# yaml-language-server: $schema=../policy.schema.json
#
# NAME: say here in a sentence or two what it does, and for whom.
#
# docs/policies.md tells how policies work, docs/cel.md what expressions may read and call.
# `bayplan policies check FOLDER` finds every mistake, `bayplan test FOLDER` runs tests.yaml.
apiVersion: bayplan.dev/v1alpha1   # admissionregistration.k8s.io/v1, if it needs no gang, plan or cluster
kind: KIND
metadata:
  name: NAME
  annotations:
    bayplan.dev/description: DESCRIPTION
spec:
  # A policy of bayplan.dev that matches pods runs on the pod templates inside Jobs and the like too.
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE, UPDATE]}
  failurePolicy: Fail   # what an error of an expression does: Fail refuses, Ignore warns
  matchConditions:      # it runs only where all of these hold
    - name: asks-for-gpus
      expression: gpus.asked(object)
"""


_VALIDATING = """\
  variables:            # read as variables.team by what follows
    - name: team
      expression: object.metadata.?labels[?"team"].orValue("")
  validations:
    - expression: variables.team != ""
      messageExpression: |
        object.metadata.?name.orValue("its pod template") + " asks for GPUs and has no label team;"
        + " what would work: metadata.labels.team"
---
# How it is put to work. Without any it runs everywhere and refuses. Begin with [Warn], then [Deny].
apiVersion: bayplan.dev/v1alpha1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: NAME
spec:
  policyName: NAME
  validationActions: [Deny]
  # matchResources:      # only in some namespaces
  #   namespaceSelector: {matchLabels: {tier: gold}}
"""


_MUTATING = """\
    - name: says-nothing-of-it
      expression: "!object.metadata.?labels[?'team'].hasValue()"
  mutations:
    - patchType: ApplyConfiguration   # merged into the object; JSONPatch takes [JSONPatch{op, path, value}]
      applyConfiguration:
        expression: |
          Object{metadata: Object.metadata{labels: {"team": request.namespace}}}
"""


_TESTS = """\
# yaml-language-server: $schema=../tests.schema.json
#
# Each case is sent the webhook's own way. docs/policies.md has all that a case may say.
cases:
- name: CASE
  object: &pod
    apiVersion: v1
    kind: Pod
    metadata: {name: train, namespace: research}
    spec:
      containers:
      - {name: train, image: trainer, resources: {limits: {nvidia.com/gpu: 1}}}
  expect:
EXPECT
- name: a pod without GPUs is left alone
  object:
    apiVersion: v1
    kind: Pod
    metadata: {name: web, namespace: research}
    spec:
      containers: [{name: web, image: nginx}]
  expect: {unchanged: true}
- name: the same holds for the pods of a Job
  object:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: train, namespace: research}
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: train, image: trainer, resources: {limits: {nvidia.com/gpu: 1}}}
  expect:
JOB
"""


_TEXTS: Mapping[str, Mapping[str, str]] = {
    "validating": {
        "BODY": _VALIDATING,
        "DESCRIPTION": "Refuses GPU pods without a label team",
        "CASE": "a GPU pod without a team is refused, and told what would work",
        "EXPECT": "    allowed: false\n    messageContains: [has no label team, metadata.labels.team]",
        "JOB": "    allowed: false\n    messageContains: has no label team",
    },
    "mutating": {
        "BODY": _MUTATING,
        "DESCRIPTION": "Gives GPU pods without a label team that of their namespace",
        "CASE": "a GPU pod without a team gets that of its namespace",
        "EXPECT": "    object: {metadata: {labels: {team: research}}}",
        "JOB": "    object: {spec: {template: {metadata: {labels: {team: research}}}}}",
    },
}


KINDS = tuple(_TEXTS)


def new_policy(name: str, into: Path, kind: str) -> Iterator[Path]:
    """Writes the folder `name` with a policy and its tests, and schemas beside it if they are missing.
    Yields the path of each new file.

    Raises `InputError` for an invalid name, or if the folder exists.
    """
    if not NAME.fullmatch(name):
        why = f"{name!r} is no name of a Kubernetes object: lower-case letters, digits and -, 63 at most"
        raise InputError(why, Where("NAME"))
    folder = into / name
    if folder.exists():
        raise InputError("is there already; take another name, or delete it", Where(str(folder)))
    folder.mkdir(parents=True)
    texts = _TEXTS[kind]
    policy = (_HEAD + texts["BODY"]).replace("KIND", f"{kind.capitalize()}AdmissionPolicy")
    policy = policy.replace("NAME", name).replace("DESCRIPTION", texts["DESCRIPTION"])
    cases = _TESTS
    for word in ("CASE", "EXPECT", "JOB"):
        cases = cases.replace(word, texts[word], 1)
    files = {folder / "policy.yaml": policy, folder / "tests.yaml": cases}
    schemas = {into / file: schema_text(of) for of, file in SCHEMAS.items()}
    for file, text in {**files, **schemas}.items():
        if not file.exists():
            file.write_text(text, encoding="utf-8")
            yield file
        elif file.read_text(encoding="utf-8") != text:
            of = next(of for of, schema in SCHEMAS.items() if schema == file.name)
            inputs.note(f"{file} is another version's; bayplan policies schema {of} prints this one's")


def schema_text(of: str) -> str:
    """Returns the text of a shipped schema. Raises `InputError` if it is missing from the installation."""
    return (inputs.shipped("policies") / SCHEMAS[of]).read_text(encoding="utf-8")
