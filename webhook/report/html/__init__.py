"""A report as one HTML page: nothing loaded from elsewhere, no script, usable by keyboard and screen reader.

- `page`: the verdict, what becomes of the objects, filters, counts
- `fabric`: the racks with the gangs in them
- `objects`: an object's findings, its racks, what would be written
- `style.css`: light and dark, from a phone's width on

Begin with `page`.
"""

from __future__ import annotations

from webhook.report.html.page import write

__all__ = ["write"]
