"""`bayplan demo`: one story that fits a screen, and `--all` for the rest."""

import io
import re

import pytest

from tests.webhook.calls import EXAMPLES
from webhook.cli.demo.scenes import SCENES, STORY
from webhook.cli.main import COMMANDS, main


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def story():
    """What `bayplan demo` prints into a pipe."""
    return _printed("demo")


@pytest.fixture(scope="module")
def everything():
    """What `bayplan demo --all` prints into a pipe."""
    return _printed("demo", "--all")


def _printed(*words: str, out: io.StringIO | None = None) -> str:
    out = out or io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdout", out)
        assert main(words) == 0
    return out.getvalue()


def test_the_demo_is_about_sixty_lines_of_eighty_columns(story):
    """Two screens of a small terminal; nothing is folded by a log."""
    lines = story.splitlines()
    assert 50 <= len(lines) <= 70
    assert max(map(len, lines)) <= 80


def test_the_demo_tells_one_story_on_one_cluster(story):
    """A gang is placed, the next waits for its rack, one can never run; the first one's end lets it in."""
    verdicts = re.findall(r"^  (admitted|queued|refused) +(.*)", story, re.MULTILINE)
    assert [verdict for verdict, _ in verdicts] == ["admitted", "queued", "refused", "admitted", "admitted"]
    assert verdicts[0][1] == verdicts[4][1] == "placed in su-1/rack-3; holds su-1/rack-3"
    assert len(re.findall(r"^superpod", story, re.MULTILINE)) == 2, "the cluster before and after"


def test_the_map_changes_as_the_story_says(story):
    """The untouched rack is the JobSet's at the end."""
    before, after = re.findall(r"^  rack-3 +(.{15})", story, re.MULTILINE)
    assert (before, after) == (". . . . . . . .", "B B B B B B B B")
    assert "  B research/JobSet/pretrain-large\n" in story


def test_the_demo_ends_with_what_to_try_next(story):
    """Each line is a command that there is."""
    tried = re.findall(r"^  bayplan (\S+)", story.partition("To try next:\n")[2], re.MULTILINE)
    assert tried == ["demo", "plan", "mutate", "report"]
    assert set(tried) <= set(COMMANDS)


def test_all_shows_every_scene_and_cuts_no_field(everything):
    """Each example by its file's name, each written field with its whole value."""
    for name in (example for scene in SCENES for example in scene.examples):
        assert f"{name}.yaml" in everything
    assert "…" not in re.sub(r"^  nvl-.*", "", everything, flags=re.MULTILINE)
    assert '"nodeSelectorTerms"' in everything


def test_every_example_of_the_story_is_there():
    """Its file has the name that the story shows."""
    assert all((EXAMPLES / f"{step.example}.yaml").is_file() for step in STORY)


@pytest.mark.parametrize("columns", [60, 100])
def test_the_demo_is_as_wide_as_the_terminal(columns, monkeypatch):
    """Sentences are folded at its last column; names and keys, which people copy, stay whole."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    lines = re.sub(r"\x1b\[[\d;]*m", "", _printed("demo", out=Terminal())).splitlines()
    prose = [line for line in lines if not re.search(r"\S{40}|bayplan|GPUs free", line)]
    assert columns - 12 <= max(map(len, prose)) <= columns
