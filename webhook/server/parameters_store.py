"""Keeps the current parameters: reads them once per change, and keeps the last valid ones if newer ones are
invalid.

Parameters come from the ConfigMap `bayplan-parameters` and from the parameter files of the policies.
Bayplan's settings are among them.
"""

from __future__ import annotations

import threading
from dataclasses import replace

from planner.model.words import counted
from webhook.admission.configuration.parameters import NO_PARAMETERS, Json, Parameters, read_parameters
from webhook.admission.environment import Environment
from webhook.policy.model.parameters import PARAMETERS, data_of
from webhook.policy.model.policy import PolicySet


class ParametersStore:
    """Adds the parameters to the environment of each decision. Thread-safe.

    A replica that starts with invalid parameters has no earlier valid ones. It ignores only the invalid
    parts, so that the values of other keys and namespaces apply. If the ConfigMap loses its last key or is
    deleted, the file beside the policies, `--mode` and the defaults apply. That may be a mistake, so there is
    a warning until it has keys again; but none if this replica has never seen keys, because the ConfigMap of
    the shipped manifests is empty too.

    `current`: the parameters in force; `problems`: what is invalid in the newest ones.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: tuple[PolicySet, Json | None] | None = None
        self.current: Parameters = NO_PARAMETERS
        self.problems: tuple[str, ...] = ()
        self._emptied = ""

    def in_force(self, environment: Environment, policies: PolicySet) -> Environment:
        """Returns the environment with the current parameters."""
        return environment.with_parameters(self._now(policies, environment.configured))

    def _now(self, policies: PolicySet, configured: Json | None) -> Parameters:
        with self._lock:
            # By identity: to compare the content of a ConfigMap of 1 MiB in each request would take longer
            # than the decision.
            if self._read is None or self._read[0] is not policies or self._read[1] is not configured:
                newest, problems = read_parameters(policies, configured)
                self._emptied = _emptied(self._read[1] if self._read else None, configured, self._emptied)
                if not problems or self._read is None:
                    self.current = replace(newest, emptied=self._emptied)
                self.problems, self._read = problems, (policies, configured)
            return self.current


def _emptied(before: Json | None, after: Json | None, warning: str) -> str:
    """Returns the warning that the ConfigMap had keys and has none in its newest version, "" if it has keys.

    `warning`: the previous one, which is repeated if the ConfigMap had no keys before either.
    """
    had, has = (len(data_of(obj)) if obj is not None else 0 for obj in (before, after))
    if has:
        return ""
    how = "has none any more" if after is not None else "is gone"
    words = f"ConfigMap {PARAMETERS} had {counted(had, 'key')} and {how}"
    return f"{words}: the file beside the policies, --mode and the defaults count" if had else warning
