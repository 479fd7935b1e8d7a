"""`bayplan demo`: the whole way of a request, on this machine.

- `command`: certificates, the webhook over TLS, the example reviews, the plan, the racks
- `apiserver`: what an API server does with an admission webhook, as far as the demo needs it
- `scenes`, `show`: what is applied, and how it is told

Begin with `command`.
"""

from __future__ import annotations

from webhook.cli.demo.command import add_parser

__all__ = ["add_parser"]
