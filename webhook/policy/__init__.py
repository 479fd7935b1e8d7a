"""Runs MutatingAdmissionPolicies and ValidatingAdmissionPolicies from files as Kubernetes runs its own.

Five packages: `model` contains the records of a policy that was read, `engine` runs policies over one object
(pure), `functions` are the CEL functions in addition to Kubernetes' own, `loading` reads policies from files
and reports every problem with its line, `testing` runs the cases of `tests.yaml` (`bayplan test`). Begin with
`model.policy`, then `engine.mutation` and `engine.validate`. *Upstream* is Kubernetes' implementation.

    from webhook.policy import from_object, load, run_mutating, run_validating
    from webhook.policy.loading.files import PolicyStore, load_paths   # disk and Git

    policies = load_paths(["policies/"])              # PolicySet; PolicyError lists every problem
    policies = load([("a.yaml", text)], revision="…") # the same, pure
    request = from_object(obj, "CREATE", old_object=None, namespace="default")

    mutated = run_mutating(policies, request, obj, inputs)
    mutated.object       # the object after all policies, without the defaults set for evaluation
    mutated.effects      # Effect(policy, binding, patch): RFC 6902 against the object before that run
    mutated.errors       # Failure with failurePolicy Fail: refuse; str(failure) is a message for users
    mutated.warnings     # Failure with failurePolicy Ignore: warn
    mutated.skipped      # Skipped(policy, lacks): policies whose variables the caller does not have

    findings = run_validating(policies, request, mutated.object, inputs)
    findings.allowed, findings.message, findings.reason, findings.code
    findings.warnings, findings.audit_annotations, findings.denials, findings.audited, findings.passed

`inputs` is a `PolicyInputs`: what the caller knows about the request, such as the variables `gang`, `plan`
and `cluster`. `webhook.admission` passes its `Evaluation`; without inputs, policies run on the object alone.
"""

from webhook.policy.engine.failures import Failure
from webhook.policy.engine.findings import Finding, Findings
from webhook.policy.engine.inputs import BareInputs, FileParams, Params, PolicyInputs
from webhook.policy.engine.mutation.mutate import Effect, Mutated, run_mutating
from webhook.policy.engine.skipped import Skipped, skipped_notice
from webhook.policy.engine.validate import run_validating
from webhook.policy.loading.errors import PolicyError, Problem
from webhook.policy.loading.load import load
from webhook.policy.model.policy import MutatingPolicy, Policy, PolicySet, ValidatingPolicy
from webhook.wire.request import AdmissionRequest, UserInfo, from_object

__all__ = [
    "AdmissionRequest",
    "BareInputs",
    "Effect",
    "Failure",
    "FileParams",
    "Finding",
    "Findings",
    "Mutated",
    "MutatingPolicy",
    "Params",
    "Policy",
    "PolicyError",
    "PolicyInputs",
    "PolicySet",
    "Problem",
    "Skipped",
    "UserInfo",
    "ValidatingPolicy",
    "from_object",
    "load",
    "run_mutating",
    "run_validating",
    "skipped_notice",
]
