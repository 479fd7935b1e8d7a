"""Results computed from the object of a request, for all policies of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.jsontools.path import Path
from webhook.policy.engine.sharing.template_forms import Forms
from webhook.policy.engine.targets import Target


@dataclass(slots=True)
class ObjectCache:
    """Results computed from the object and its templates, shared by all policies.

    Nothing is changed in place: a mutation creates new maps and lists on the path to its change. A part of
    the object that no policy has changed is therefore the same Python object in each later state, and results
    for it stay valid. Otherwise, after a mutation of one of n templates, the results of all n would have to
    be computed again.

    - `own`: the object itself as a target; `templates`: the pod templates of the object `targets_of`, as
      targets
    - `defaulted`: by path and `template` (see `PolicyPass.defaulted`), the value there without defaults, and
      its copy with them
    - `contents`: by path, the template and its JSON (None if JSON cannot represent it); `by_content`: by this
      JSON and `template`, the copy with defaults
    - `variables`: `gang`, `plan` and `cluster` of the object `variables_of`
    """

    own: Target | None = None
    targets_of: Any = None
    templates: tuple[Target, ...] = ()
    defaulted: dict[tuple[Path, bool], tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    contents: dict[Path, tuple[Any, bytes | None]] = field(default_factory=dict)
    by_content: dict[tuple[bytes, bool], dict[str, Any]] = field(default_factory=dict)
    forms: Forms = field(default_factory=Forms)
    variables_of: Any = None
    variables: dict[int, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    """By the `id` of a PodSet's name, because the name may be a stand-in, which has no hash: the name, which
    is kept alive so that no other object gets the same `id`, and the variables.
    """
