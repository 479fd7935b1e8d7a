"""CEL functions that find misspelt keys and resources."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.cel import Function
from webhook.workloads.key_table.misspelt_keys import misspelt, misspelt_resources

KEY_FUNCTIONS: Mapping[str, Function] = {
    "keys.misspelt": Function(misspelt, 1, 1),
    "keys.misspeltResources": Function(misspelt_resources, 2, 2),
}
"""Name in CEL → the function, the fewest and the most arguments."""
