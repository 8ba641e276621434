"""What is wrong with a command line is said in our own words, whatever click says (09 §1.1)."""

from __future__ import annotations

import click
import pytest

from harnpy.cli.app import main


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("rnu", "no such command 'rnu'. Did you mean 'run'?"),
        ("quux", "no such command 'quux'"),
        ("check --strict-type", "no such option '--strict-type'. Did you mean '--strict-types'?"),
        ("sessions", "missing command"),
        ("sessions shwo", "no such command 'shwo'. Did you mean 'show'?"),
        ("sessions --quux", "no such option '--quux'"),
        ("eval", "missing argument 'PATH'"),
        ("version a", "too many arguments"),
        ("test --timeout", "option '--timeout' requires an argument"),
        ("builtins --json=3", "option '--json' does not take a value"),
        ("bench x.harn --iterations z", "invalid value for '--iterations': expected an int >= 0"),
        (
            "bundle export x --mode y",
            "invalid value for '--mode': expected one of sanitized, local, replay-only",
        ),
        ("mcp serve --cert /none x.harn", "invalid value for '--cert': expected a file that can be read"),
        (
            "test --timeout soon",
            "invalid value for '--timeout': 'soon' is not a time such as 500, 500ms or 2.5s",
        ),
    ],
)
@pytest.mark.parametrize("says_otherwise", [False, True], ids=["as it is", "with other words"])
def test_usage_errors(
    words: str,
    problem: str,
    says_otherwise: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if says_otherwise:
        for kind in (click.UsageError, click.BadParameter, click.MissingParameter, click.NoSuchOption):
            monkeypatch.setattr(kind, "format_message", lambda self: "click's own words")
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"error: {problem}\n\nUsage: ")
