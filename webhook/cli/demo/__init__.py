"""`bayplan demo`: runs the webhook on this machine, and sends it example manifests.

A *scene* is a cluster with examples that are applied to it. The *story* is one scene in steps with
explanations.

- `command`: the command; runs the story, or every scene
- `stage`: serves the webhook over TLS on loopback, with its own cluster and ledger
- `apiserver`: calls the webhook as an API server does, as far as the demo needs it
- `scenes`: the examples of the story and of every scene; `show`: prints their results

Begin with `command`.
"""

from __future__ import annotations

from webhook.cli.demo.command import add_parser

__all__ = ["add_parser"]
