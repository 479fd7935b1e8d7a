"""`bayplan demo`: the whole way of a request, on this machine.

- `command`: the story, or every scene, from the certificates to the racks
- `stage`: the webhook over TLS on loopback, with a cluster and a book of its own
- `apiserver`: what an API server does with an admission webhook, as far as the demo needs it
- `scenes`, `show`: what is applied, and how it is told

Begin with `command`.
"""

from __future__ import annotations

from webhook.cli.demo.command import add_parser

__all__ = ["add_parser"]
