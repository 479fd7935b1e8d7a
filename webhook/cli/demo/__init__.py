"""`bayplan demo`: runs the webhook on this machine, and sends it example manifests.

- `command`: the command; runs the story, or every scene
- `stage`: serves the webhook over TLS on loopback, with its own cluster and ledger
- `apiserver`: calls the webhook as an API server does, as far as the demo needs it
- `scenes`, `show`: the examples, and how their results are printed

Begin with `command`.
"""

from __future__ import annotations

from webhook.cli.demo.command import add_parser

__all__ = ["add_parser"]
