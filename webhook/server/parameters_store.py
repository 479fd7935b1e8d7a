"""The parameters that answer now: read once for each change; the last good ones stay while newer are bad."""

from __future__ import annotations

import threading

from webhook.admission.environment import Environment
from webhook.admission.parameters import NO_PARAMETERS, Json, Parameters, read_parameters
from webhook.policy.engine.model import PolicySet


class ParametersStore:
    """Gives the environment of each decision its parameters. Safe in any thread.

    A replica that starts on bad parameters has no good ones: then what is wrong in them is left out, so that
    what was chosen for other keys and namespaces still holds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: tuple[PolicySet, Json | None] | None = None
        self.current: Parameters = NO_PARAMETERS
        self.problems: tuple[str, ...] = ()

    def in_force(self, environment: Environment, policies: PolicySet) -> Environment:
        """The environment with the parameters beside the policies and those of the cluster in force."""
        return environment.with_parameters(self._now(policies, environment.configured))

    def _now(self, policies: PolicySet, configured: Json | None) -> Parameters:
        with self._lock:
            # By identity: to compare a ConfigMap of 1 MiB for each request would take longer than to decide.
            if self._read is None or self._read[0] is not policies or self._read[1] is not configured:
                newest, problems = read_parameters(policies, configured)
                if not problems or self._read is None:
                    self.current = newest
                self.problems, self._read = problems, (policies, configured)
            return self.current
