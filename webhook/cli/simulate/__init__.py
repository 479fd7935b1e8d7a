"""`bayplan simulate`: a month of a cluster under several ways to place gangs.

- `command`: options, runs, the table
- `plot`: the run as an SVG; `page`: that and the figures as HTML

Begin with `command`.
"""

from __future__ import annotations

from webhook.cli.simulate.command import add_parser

__all__ = ["add_parser"]
