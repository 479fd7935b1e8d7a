"""What commands print on a terminal: names and messages as text, whatever is in them."""

from __future__ import annotations

import io

import pytest

from webhook.report import terminal

HOSTILE = ("\x1b[2J", "a\u202egnp.exe", "\x9b31m", "\x07")


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_text_cannot_steer_the_terminal(text: str) -> None:
    """Neither as a line nor in a table: U+FFFD stands for what could."""
    out = io.StringIO()
    console = terminal.console(out)
    console.print(f"name: {text}")
    console.print(terminal.table(("name",), [(text,)]))
    assert "\ufffd" in out.getvalue()
    assert not any(sign in out.getvalue() for sign in "\x1b\x9b\x07\u202e")


def test_brackets_are_text_and_lines_stay_lines() -> None:
    """Rich reads no markup from data."""
    out = io.StringIO()
    terminal.console(out).print("[bold]a[/bold]\nb")
    assert out.getvalue() == "[bold]a[/bold]\nb\n"
