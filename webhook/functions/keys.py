"""The function of policies over the spelling of annotation and label keys."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.cel import Function
from webhook.workloads.misspelt_keys import misspelt

KEY_FUNCTIONS: Mapping[str, Function] = {"keys.misspelt": Function(misspelt, 1, 1)}
"""Name in CEL → the function, the fewest and the most arguments."""
