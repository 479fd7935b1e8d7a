"""The parameters that answer now: read once for each change; the last good ones stay while newer are bad."""

from __future__ import annotations

import threading
from dataclasses import replace

from planner.model.words import counted
from webhook.admission.configuration.parameters import NO_PARAMETERS, Json, Parameters, read_parameters
from webhook.admission.environment import Environment
from webhook.policy.model.parameters import PARAMETERS, data_of
from webhook.policy.model.policy import PolicySet


class ParametersStore:
    """Gives the environment of each decision its parameters. Safe in any thread.

    A replica that starts on bad parameters has no good ones: then what is wrong in them is left out, so that
    what was chosen for other keys and namespaces still holds.

    A ConfigMap that is emptied or deleted chooses nothing: that is how to go back to the defaults, and how
    the one that ships begins. As it may be a slip too, it is told as a warning for as long as it stays so.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: tuple[PolicySet, Json | None] | None = None
        self.current: Parameters = NO_PARAMETERS
        self.problems: tuple[str, ...] = ()
        self._emptied = ""

    def in_force(self, environment: Environment, policies: PolicySet) -> Environment:
        """The environment with the parameters beside the policies and those of the cluster in force."""
        return environment.with_parameters(self._now(policies, environment.configured))

    def _now(self, policies: PolicySet, configured: Json | None) -> Parameters:
        with self._lock:
            # By identity: to compare a ConfigMap of 1 MiB for each request would take longer than to decide.
            if self._read is None or self._read[0] is not policies or self._read[1] is not configured:
                newest, problems = read_parameters(policies, configured)
                self._emptied = _emptied(self._read[1] if self._read else None, configured, self._emptied)
                if not problems or self._read is None:
                    self.current = replace(newest, emptied=self._emptied)
                self.problems, self._read = problems, (policies, configured)
            return self.current


def _emptied(before: Json | None, after: Json | None, warning: str) -> str:
    """That the ConfigMap had keys and has none now, in words; `warning` is what was told of it until now."""
    had, has = (len(data_of(obj)) if obj is not None else 0 for obj in (before, after))
    if has:
        return ""
    how = "has none any more" if after is not None else "is gone"
    words = f"ConfigMap {PARAMETERS} had {counted(had, 'key')} and {how}"
    return f"{words}: the file beside the policies, --mode and the defaults count" if had else warning
