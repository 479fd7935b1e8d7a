"""Tests the names that the package `planner` itself offers."""

import subprocess
import sys

import planner


def test_the_facade_offers_what_most_callers_need():
    """Each name that it lists can be had, and is the one of the package below."""
    for name in planner.__all__:
        assert getattr(planner, name).__name__ in (name, "read")
        assert name in dir(planner)


def test_a_small_module_of_the_planner_is_imported_without_the_rest():
    """The command line reads errors before it needs a plan."""
    script = "import sys, planner.model.errors; print(*(m for m in sys.modules if m.startswith('planner')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["planner", "planner.model", "planner.model.errors"]
