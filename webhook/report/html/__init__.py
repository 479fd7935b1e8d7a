"""Writes a report as one HTML page. It has no scripts, loads nothing, and works with keyboard and screen
reader.

- `page`: the page, with verdict, fates, filters and counts
- `fabric`: the racks with their gangs
- `objects`: an object's findings, racks and diff
- `style.css`: the style, for light and dark mode and small screens

Begin with `page`.
"""

from __future__ import annotations

from webhook.report.html.page import write

__all__ = ["write"]
