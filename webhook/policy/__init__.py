"""The policy engine: Mutating- and ValidatingAdmissionPolicy from files, as Kubernetes means them.

Use:

    from webhook.policy import Host, from_object, load, run_mutating, run_validating
    from webhook.policy.files import PolicyStore, load_paths          # the shell: disk, Git

    policies = load_paths(["policies/"])              # PolicySet; PolicyError lists every problem
    policies = load([("a.yaml", text)], revision="…") # the same, pure; functions=FUNCTIONS by default
    policies.revision, policies.mutating, policies.validating, policies.uses_plan

    request = from_object(obj, "CREATE", old_object=None, namespace="default")   # or decoded from the wire
    host = Host(
        known=frozenset({"gang", "plan", "cluster"}),     # Host.offline(...) knows `gang` only
        facts_for=lambda obj, pod_set: LazyMapping(...),  # asked only for the names that are read
        templates=lambda obj: [(t.path, t.pod_set) for t in read(obj).templates],
    )
    mutated = run_mutating(policies, request, obj, host)
    mutated.object       # with what policies changed and without the defaults set for evaluation
    mutated.effects      # Effect(policy, binding, patch): RFC 6902 against the object before that run
    mutated.errors       # Failure under failurePolicy Fail: refuse; str(failure) is for people
    mutated.warnings     # Failure under Ignore: warn
    mutated.skipped      # Skipped(policy, lacks): the caller has no such facts

    found = run_validating(policies, request, mutated.object, host)
    found.allowed, found.message, found.reason, found.code
    found.warnings, found.audit_annotations, found.denials, found.audited, found.passed

`facts_for` gets the whole object as it is at that moment (without evaluation defaults), also when the policy
is shown a template; `pod_set` is then the template's, else "". A ValueError (InputError) that it raises is
an error of the expression.

The parts, from the file inward: `files` (disk) → `document` (YAML with line numbers) → `load`, `read`,
`fields`, `match`, `selectors` (the schema) → `expressions` (compiling) → `model` (what is run) → `runs`,
`targets`, `activation`, `host` (one run) → `mutate` (`patching`, `merge`, `defaults`, `shape`), `validate`.
`cases`, `runner`, `coverage` and `junit` are `bayplan test`.
"""

from webhook.policy.engine.context import EvaluationContext, FileParams, Params
from webhook.policy.engine.model import MutatingPolicy, Policy, PolicySet, ValidatingPolicy
from webhook.policy.engine.mutate import Effect, Mutated, Skipped, run_mutating, skipped_notice
from webhook.policy.engine.session import Failure
from webhook.policy.engine.validate import Finding, Findings, run_validating
from webhook.policy.loading.errors import PolicyError, Problem
from webhook.policy.loading.load import load
from webhook.wire.request import AdmissionRequest, UserInfo, from_object

__all__ = [
    "AdmissionRequest",
    "Effect",
    "EvaluationContext",
    "Failure",
    "FileParams",
    "Finding",
    "Findings",
    "Mutated",
    "MutatingPolicy",
    "Params",
    "Policy",
    "PolicyError",
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
