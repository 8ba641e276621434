"""`harnpy init` and `harnpy new`: a small project that runs, with a test and a file for CI. Spec: 09 §6.1.

What it makes are the files below `harnpy/cli/templates`: those in ``shared``, and those of one template.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.console import complain, one_line, say, say_folded
from harnpy.formats.json import compact_json
from harnpy.project import MANIFEST

_TEMPLATES = Path(__file__).parents[1] / "templates"
_SHARED = "shared"
_CI = (
    "For CI, .github/workflows/harn.yml installs what the repository's variable HARNPY names "
    "(git+https://…, or a wheel's address), or else `harnpy` from PyPI, where there is no release yet."
)
#: What the manifests of templates are called, for which the directory's name stands in a project.
_PLACEHOLDER = "my-project"
#: Replies of a model for `main.harn`, in the templates whose program asks one.
_REPLIES = "main.llm-mock.jsonl"

#: By template, what `--help` says of it, and the third of the next commands.
TEMPLATES = {
    "basic": ("a program and a module", "harnpy repl"),
    "agent": ("an agent with a tool", "harnpy doctor"),
    "workflow": ("stages that end with a check", "harnpy doctor"),
    "service": ("an agent for `harnpy serve`", "harnpy serve main.harn"),
    "library": ("functions for other projects", "harnpy lint ."),
}


def _make(directory: str | None, template: str) -> int:
    root = Path(directory or ".")
    files = contents(template, root.absolute().name)
    there = [path for path in files if (root / path).exists() or (root / path).is_symlink()]
    if there:
        complain(
            f"error: nothing is overwritten: in {one_line(str(root))} there is {', '.join(there)} already"
        )
        complain("  = help: name another directory: harnpy init DIR")
        return FAILED
    say(
        f"Creating project '{one_line(directory)}'..."
        if directory
        else "Initializing the current directory..."
    )
    for path, text in files.items():
        place = root.absolute() / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        say(f"  create  {path}")
    say("\nNext:")
    for command in next_commands(template, directory):
        say(f"  {one_line(command)}")
    say_folded(f"\n{_CI}", 0)
    return OK


def contents(template: str, name: str) -> dict[str, str]:
    """Return the files of a project of that name: their texts by their paths."""
    found = {}
    for folder in (_TEMPLATES / _SHARED, _TEMPLATES / template):
        for file in folder.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                found[file.relative_to(folder).as_posix()] = file.read_text(encoding="utf-8")
    package = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-") or _PLACEHOLDER
    found[MANIFEST] = found[MANIFEST].replace(f'"{_PLACEHOLDER}', compact_json(package)[:-1])
    return dict(sorted(found.items()))


def next_commands(template: str, directory: str | None = None) -> list[str]:
    """Return the three commands that come next, the first of which enters the directory, if there is one."""
    from shlex import quote

    replies = f"--llm-mock {_REPLIES} " if (_TEMPLATES / template / _REPLIES).is_file() else ""
    enter = f"cd {quote(directory)} && " if directory else ""
    return [f"{enter}harnpy run {replies}main.harn", "harnpy test", TEMPLATES[template][1]]


def _command(name: str, summary: str) -> click.Command:
    @click.command(name, short_help=summary)
    @click.argument("directory", required=False, metavar="[DIR]")
    @click.option(
        "--template",
        type=click.Choice([*TEMPLATES]),
        default="basic",
        metavar="NAME",
        help=f"{'; '.join(f'{template}: {what}' for template, (what, _) in TEMPLATES.items())}.",
    )
    def made(**given: Any) -> int:
        """Create a small project in DIR, by default the current directory.

        It has a program that runs, a passing test and a GitHub Actions workflow. If one of its files
        exists, nothing is created. `harnpy new` is the same command.
        """
        return _make(**given)

    return made


command = _command("init", "Create a small project that runs.")
new = _command("new", "The same as `init`.")
