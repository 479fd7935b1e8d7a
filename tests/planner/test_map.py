"""The map of the planner in its package's docstring."""

import re
from pathlib import Path

import planner


def test_what_the_map_names_is_there():
    """A module that moved or went is not pointed at."""
    named = re.findall(r"`(\w+)`", planner.__doc__ or "")
    folder = Path(planner.__file__).parent
    assert len(named) > 60
    assert [name for name in named if not (folder / f"{name}.py").is_file()] == []
