"""The HTML report in Chromium: `make browser` runs this, with what `.ci/build-browser` installs.

Each page is looked at on a phone, a tablet and a wide screen, in light and dark; axe-core judges contrast,
names, roles and order. `BAYPLAN_SHOTS=FOLDER` keeps the screenshots.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.webhook.calls import EXAMPLES
from webhook.cli.main import main
from webhook.report.formats import FORMATS
from webhook.report.model import Report, Result

TOOLS = os.environ.get("BAYPLAN_BROWSER", "")
pytestmark = pytest.mark.skipif(not TOOLS, reason="needs Chromium: run `make browser`")

WIDTHS = (360, 800, 1440)
THEMES = ("light", "dark")
PAGES = ("together", "racks", "hostile", "quiet")
NAMES = (
    '"><script>document.title = "x"</script>',
    "\x1b[2J\u202egnp.exe",
    "w" * 10_000,
    "<img src=http://example.com/x>",
)


def hostile() -> Report:
    """What a person may write into names and messages, and so into a page."""
    rows = [
        Result(f"{name}/{name}/{name}", "fail", "policy", name, name, name, name, 3, name) for name in NAMES
    ]
    fates = tuple((name, "refused") for name in NAMES)
    return Report(tuple(rows), NAMES[0], fates=fates)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What Chromium saw of all pages: one process looks at all of them."""
    folder = tmp_path_factory.mktemp("pages")
    superpod, nvl72 = (
        str(EXAMPLES / "clusters" / f"{name}.yaml") for name in ("superpod-32", "nvl72-8racks")
    )
    jobs = [
        str(EXAMPLES / f"{name}.yaml")
        for name in ("job-six-nodes-one-rack", "jobset-64-gpus", "job-nine-nodes-one-rack", "mpijob-32-gpus")
    ]
    serving = str(EXAMPLES / "jobset-disaggregated-serving.yaml")
    written = {
        "together": _printed("-c", superpod, "--together", "-f", *jobs, serving),
        "racks": _printed("-c", nvl72, "-f", str(EXAMPLES / "rayjob-64-gpus.yaml")),
        "hostile": _html(hostile()),
        "quiet": _html(Report((Result("a/Job/b", "pass", "policy", "p"),), fates=(("a", "unchanged"),))),
    }
    pages = []
    for name, text in written.items():
        (folder / f"{name}.html").write_text(text)
        pages.append({"name": name, "path": str(folder / f"{name}.html")})
    order = folder / "order.json"
    chromium = shutil.which("chromium") or ""
    shots = os.environ.get("BAYPLAN_SHOTS", "")
    order.write_text(
        json.dumps({"pages": pages, "widths": WIDTHS, "themes": THEMES, "shots": shots, "chromium": chromium})
    )
    script = Path(__file__).with_name("look.mjs")
    ran = subprocess.run(
        ["node", str(script), TOOLS, str(order)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    document: Mapping[str, Any] = json.loads(ran.stdout)
    return document


def _printed(*words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        main(["report", *words, "-o", "html"])
    return out.getvalue()


def _html(report: Report) -> str:
    out = io.StringIO()
    FORMATS["html"](report, out)
    return out.getvalue()


@pytest.fixture(params=[(p, w, t) for p in PAGES for w in WIDTHS for t in THEMES], ids=str)
def look(request: pytest.FixtureRequest, looks: Mapping[str, Any]) -> Mapping[str, Any]:
    """One page at one width in one theme."""
    page, width, theme = request.param
    (seen,) = (
        seen
        for seen in looks["looks"]
        if (seen["page"], seen["width"], seen["theme"]) == (page, width, theme)
    )
    return dict(seen)


def test_nothing_sticks_out_and_no_head_is_broken(look: Mapping[str, Any]) -> None:
    """The page is as wide as the screen, and a column's head is one line."""
    assert not look["overflow"]
    assert look["sticksOut"] == []
    assert look["brokenHeads"] == []


def test_the_console_is_empty_and_nothing_is_asked_for(look: Mapping[str, Any]) -> None:
    """No error, no blocked script, no request to anywhere."""
    assert look["console"] == []


def test_axe_finds_no_fault(look: Mapping[str, Any]) -> None:
    """Contrast, names, roles, headings and regions, with everything unfolded."""
    assert look["axe"] == []


@pytest.mark.parametrize("page", PAGES)
def test_light_and_dark_are_two_grounds(page: str, looks: Mapping[str, Any]) -> None:
    """The theme is the reader's."""
    grounds = {(seen["theme"], seen["ground"]) for seen in looks["looks"] if seen["page"] == page}
    assert len(grounds) == len({ground for _, ground in grounds}) == 2


@pytest.mark.parametrize("page", ["together", "hostile"])
def test_a_filter_shows_the_objects_of_its_value_and_show_all_shows_all(
    page: str, looks: Mapping[str, Any]
) -> None:
    """In the browser's own reading of the rules, for each value of each filter."""
    (used,) = (used for used in looks["uses"] if used["page"] == page)
    assert used["filtered"]
    for value, shown in used["filtered"].items():
        assert shown == [classes for classes in used["all"] if value in classes.split()], value
    assert used["afterReset"] == used["all"]


def test_the_keyboard_reaches_the_filters_and_opens_what_is_folded(looks: Mapping[str, Any]) -> None:
    """By Tab and Enter alone."""
    (used,) = (used for used in looks["uses"] if used["page"] == "together")
    assert {"select", "button", "summary", "a"} <= set(used["reached"])
    assert used["opened"] is True
