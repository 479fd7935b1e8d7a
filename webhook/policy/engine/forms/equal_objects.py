"""The forms of objects that are equal but for values that vary, and the outcomes of policies on them.

A Job sends hundreds of pods, and a sweep hundreds of Jobs, that differ only in what names them, in what their
containers run, and in what the plan writes (`webhook.workloads.varying_values`). They have a common form, in
which stand-ins replace these values. The only template of a new object has a form in the same way.
`sharing/shared_runs.py` says when a later object has the same outcome.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from planner.model.effort.deadline import poll
from webhook.cel.values.stand_in import StandIn
from webhook.jsontools.path import Path, find
from webhook.policy.engine.forms.form import Form, json_of, pull_policies, with_stand_ins
from webhook.policy.engine.forms.no_effect import NoEffect
from webhook.workloads.varying_values import varying_paths

MAX_FORMS: Final = 512
"""Maximum number of forms; the one that was not used for the longest time is removed first. The two calls for
a pod see it in about ten states, each with its form. After the plan, the form has the name of the node, so
that pods share their last three forms only with other pods of their node; so do Jobs and their templates.
"""


MAX_OUTCOMES: Final = 256
"""Maximum number of outcomes of a form; all are removed when it is reached. There are one or two for each
policy, and as many again for each value of `gang`.
"""


MAX_BYTES: Final = 8 * 1024
"""Maximum length of an object as JSON, with the paths of its stand-ins; a larger one has no form. All forms
take at most some 20 MB, and what policies write and their parameters come on top. A usual one takes 6 kB.
"""


MAX_STAND_INS: Final = MAX_BYTES // 40
"""Maximum number of stand-ins: the path of one takes about 40 bytes. Checked before the length, because each
stand-in is a copy of the mapping around it.
"""


MAX_CONTEXTS: Final = 4
"""Maximum number of records of the policies without an effect on a form; all are removed when it is reached.
There is one for each value of `gang` and of the namespace.
"""


@dataclass(frozen=True, slots=True)
class FormOutcome:
    """The outcome of a policy on a form. `effect`: None if the policy must be run on each object. `kept`: the
    objects whose `id` is in the key, kept alive so that no other object gets this `id`.
    """

    effect: object
    kept: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SharedForm(Form):
    """The form of equal objects, and the outcomes of policies on them, by what else these depend on."""

    outcomes: dict[tuple[object, ...], FormOutcome] = field(default_factory=dict)
    no_effects: dict[tuple[object, ...], dict[int, NoEffect]] = field(default_factory=dict)
    """The policies without an effect, by their `id`, for each context: all that a policy which reads no
    stand-in may read besides the form and its parameters.
    """

    def record(self, key: tuple[object, ...], outcome: FormOutcome) -> None:
        """Records an outcome under its key."""
        if len(self.outcomes) >= MAX_OUTCOMES:
            self.outcomes.clear()
        self.outcomes[key] = outcome


@dataclass(slots=True)
class EqualObjects:
    """The forms of objects, with the outcomes of policies for all requests with the same value of `cluster`.

    `forms`: by the digest of their content without defaults, the one used last at the end. Objects with equal
    content without defaults have equal defaults, also after a policy has changed both in the same way.
    There is no lock: two threads may compute the same outcome twice, and both results are equal.
    """

    forms: OrderedDict[bytes, SharedForm] = field(default_factory=OrderedDict)

    def form(
        self,
        obj: Mapping[str, Any],
        show: Callable[[], dict[str, Any]],
        templates: Sequence[Path],
        *,
        template: bool,
    ) -> SharedForm | None:
        """Returns the form of a target's object; None if it is too large or JSON cannot represent it.

        `show` returns the object with defaults, which are those of a template if `template` is set.
        `templates`: the paths of the templates in it.
        """
        places = _stand_ins(obj, templates)
        if len(places) > MAX_STAND_INS:
            return None
        content, stand_ins = with_stand_ins(obj, places)
        # With the paths of the stand-ins: another object may have the text that stands for them in JSON. With
        # the pull policies: they are the one default that depends on a hidden value.
        pulls = [pull_policies(find(obj, path)) for path in ((), *templates)]
        key = digest((content, tuple(stand_ins), pulls, template), MAX_BYTES)
        if key is None:
            return None
        form = self.forms.get(key)
        if form is None:
            shown = show()
            form = SharedForm(*with_stand_ins(shown, _stand_ins(shown, templates)))
        self.forms.pop(key, form)
        self.forms[key] = form
        if len(self.forms) > MAX_FORMS:
            self.forms.popitem(last=False)
        return form


def _stand_ins(obj: Mapping[str, Any], templates: Sequence[Path]) -> dict[Path, StandIn]:
    """Returns stand-ins for where equal objects may differ, by path. Each path has one of its own, so that a
    policy cannot exchange two of them unnoticed.
    """
    poll("policies")  # it walks all containers
    return {path: StandIn() for path in varying_paths(obj, templates)}


def digest(value: Any, limit: int | None = None) -> bytes | None:
    """Returns the SHA-256 of a value as JSON; None if it is longer than `limit` bytes, or if JSON cannot
    represent it.
    """
    content = json_of(value)
    if content is None or (limit is not None and len(content) > limit):
        return None
    return hashlib.sha256(content).digest()
