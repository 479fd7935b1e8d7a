"""The policies that do nothing to equal objects, which are left out as a whole.

About fifty policies concern a new pod, and five of them change it. On a later pod of the same form (see
`equal_objects.py`), each of the others would be matched, bound to its parameters and looked up for each of
its parts, only to do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.policy.model.policy import ParamKind, ParamRef, Policy


@dataclass(frozen=True, slots=True)
class NoEffect:
    """A policy that matches no target, or whose runs all change nothing, find nothing and do not fail.

    `params`: for each paramRef that was looked up, the paramKind, the paramRef, whether the policy has no
    binding, and the objects to which it refers. `cost`, `conditions_cost`: the cost units of its
    expressions and of its match conditions. `ran`, `annotations`: of a validating policy, its name for each
    run whose match conditions hold, and the policy, the name and the text of each audit annotation.

    `policy` is kept alive so that no other policy gets its `id`.
    """

    policy: Policy
    params: tuple[tuple[ParamKind, ParamRef, bool, list[Mapping[str, Any]]], ...]
    cost: int
    conditions_cost: int
    ran: tuple[str, ...]
    annotations: tuple[tuple[str, str, str], ...]
