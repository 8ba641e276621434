"""How does each of sixteen libraries send one conversation, and read one stream?

    python bench/dialects.py [NAME …] [--folder FOLDER] [--write]

Each library is installed from PyPI, as pinned here, into a venv of its own in FOLDER (by default one in the
temporary directory), which is reused. It runs in a process of that venv, through its public API, against a
service of ours on 127.0.0.1. `--write` writes the results into docs/dialects.md and keeps those of other
libraries. Without names, all libraries are tried.

`bench/probes/rows.py` defines each row's input and verdict, `bench/probes/libraries` how a library is used.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from threading import Timer
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from probes.rows import CONVERSATIONS, NOT_ASKED, ROWS, STREAMS, Row, Seen, user  # noqa: E402
from probes.service import MODELS, Service  # noqa: E402

PAGE = HERE.parent / "docs" / "dialects.md"
PROBES = HERE / "probes"
SEEN = PROBES / "seen.json"
OURS = "harnpy"
_BEGIN = "<!-- python bench/dialects.py --write -->"
_END = "<!-- the end of what it writes -->"

_OPENAI, _ANTHROPIC, _GOOGLE = "openai==3.57.0", "anthropic==2.14.0", "google-genai==3.6.1"
_LITELLM = "litellm==1.110.2"

#: What is installed for each library: the newest on 29 November 2026, with the newest SDKs that it takes.
PINS = {
    "pydantic-ai": [
        *("pydantic-ai-slim[openai,anthropic,google]==2.68.0", _OPENAI, _ANTHROPIC),
        "google-genai==2.34.0",
    ],
    "langchain": [
        *("langchain-core==1.8.3", "langchain-openai==1.7.4", "langchain-anthropic==1.7.10"),
        *("langchain-google-genai==4.4.3", _OPENAI, _ANTHROPIC, _GOOGLE),
    ],
    "litellm": [_LITELLM, _OPENAI],
    "openai-agents": ["openai-agents[litellm]==0.24.0", _LITELLM, _OPENAI],
    "agno": ["agno==3.1.10", _OPENAI, _ANTHROPIC, _GOOGLE],
    "strands": [
        *("strands-agents[openai,anthropic,gemini]==1.62.0", "openai==2.54.0", "anthropic==0.125.0"),
        "google-genai==2.34.0",
    ],
    # With a newer SDK of Anthropic's each call of autogen's and llama-index's clients raises TypeError.
    "autogen": ["autogen-ext[openai,anthropic]==0.7.5", _OPENAI, "anthropic==0.69.0"],
    "smolagents": ["smolagents[openai]==1.26.0", _OPENAI],
    "llama-index": [
        *("llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3"),
        *("llama-index-llms-anthropic==0.12.3", "llama-index-llms-google-genai==0.11.3"),
        *("openai==2.54.0", "anthropic==0.86.0", "google-genai==2.34.0"),
    ],
    "semantic-kernel": ["semantic-kernel==1.45.0", _OPENAI],
    "inspect-ai": ["inspect-ai==0.3.285", _OPENAI, _ANTHROPIC, _GOOGLE],
    "any-llm": ["any-llm-sdk[openai,anthropic,gemini]==1.40.2", _OPENAI, "anthropic==0.125.0", _GOOGLE],
    "instructor": ["instructor[anthropic]==1.17.0", "openai==3.3.0", "anthropic==0.93.0"],
    "dspy": ["dspy==3.4.1", _LITELLM, _OPENAI],
    "google-genai": [_GOOGLE],
    "ai-sdk": [
        *("ai@6.0.326", "@ai-sdk/anthropic@3.0.140", "@ai-sdk/google@3.0.141"),
        *("@ai-sdk/openai-compatible@2.0.92", "zod@4.1.12"),
    ],
}

#: Seconds for one answer. The first one imports the library.
PATIENCE = 60

LATE = f"no answer in {PATIENCE} s"
#: What a driver raises where its library has no such dialect, or no way to say something.
_NO_MEANS = "NotImplementedError"

LOOK = user("Look.")

#: What each library did, by the titles of the rows.
Column = dict[str, str]


def installed(name: str, folder: Path) -> list[str]:
    """Return the command that runs a library; install its pinned packages if necessary.

    Raises `CalledProcessError` if one can't be installed.
    """
    place, pins = folder / name, "\n".join(PINS[name])
    is_python = "==" in pins
    noted = place / "pins.txt"
    if not noted.exists() or noted.read_text(encoding="utf-8") != pins:
        print(f"{name}: installing into {place}", file=sys.stderr)
        if is_python:
            venv.create(place, with_pip=True, clear=True)
            pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
            _run("nice", *pip, *PINS[name])
        else:
            place.mkdir(parents=True, exist_ok=True)
            _run(
                "nice",
                "npm",
                "install",
                "--no-audit",
                "--ignore-scripts",
                "--prefix",
                str(place),
                *PINS[name],
            )
        noted.write_text(pins, encoding="utf-8")
    return asking(name, str(place / "bin" / "python")) if is_python else ["node", str(_driver(name, "cjs"))]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def _driver(name: str, ending: str) -> Path:
    return PROBES / "libraries" / f"{name.replace('-', '_')}.{ending}"


def asking(name: str, python: str) -> list[str]:
    """Return the command that runs a Python library."""
    return [python, "-P", "-W", "ignore", str(PROBES / "child.py"), str(_driver(name, "py"))]


class Library:
    """A library in a process of its own, which is restarted if it doesn't answer."""

    def __init__(self, command: list[str], folder: str, path: str) -> None:
        self._command, self._folder, self._path = command, folder, path
        self._process: subprocess.Popen[str] | None = None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = Timer(PATIENCE, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        return {"said": {}, "error": LATE}

    def _start(self) -> subprocess.Popen[str]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": self._folder,
            "PYTHONPATH": self._path,
            "NODE_PATH": self._path,
        }
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        quiet = {**pipes, "stderr": subprocess.DEVNULL, "encoding": "utf-8"}
        self._process = subprocess.Popen(self._command, cwd=self._folder, env=env, **quiet)
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def column(command: list[str], path: str = "", verbose: bool = False) -> Column:
    """Return what a library did, in the words of each row. ``path``: where to find its modules."""
    found: Column = {}
    with Service() as service, tempfile.TemporaryDirectory(prefix="harnpy-dialects-") as folder:
        asked = Library(command, folder, path)

        def ask(dialect: str, messages: Sequence[Any], events: Sequence[Any]) -> dict[str, Any]:
            service.events, service.requests = events, []
            known = {"dialect": dialect, "url": service.url, "model": MODELS[dialect]}
            return asked.ask({**known, "messages": messages})

        # A library that fails at the simplest request doesn't fit its SDKs; that says nothing about a row.
        plain = {dialect: ask(dialect, [LOOK], []).get("error") for dialect in MODELS}
        for row in ROWS:
            answer = ask(row.dialect, row.messages or [LOOK], row.events)
            words = _seen(row, answer, service, plain[row.dialect])
            found[row.title] = words
            if verbose:
                print(f"{row.mark(words):5} {row.title}: {words}")
                print("     ", json.dumps(answer)[:600])
                print("     ", json.dumps(service.requests[:2])[:3000])
        asked.close()
    return found


def _seen(row: Row, answer: dict[str, Any], service: Service, plainly: str | None) -> str:
    error = answer.get("error")
    if error == _NO_MEANS or (row.events and service.requests and not service.streamed):
        return NOT_ASKED
    if plainly not in (None, _NO_MEANS):
        return f"{NOT_ASKED} {plainly} of any request"
    return error if error == LATE else row.see(Seen(service.requests, answer["said"], error))


def ours(verbose: bool = False) -> Column:
    """Return harnpy's column, of this checkout."""
    return column(asking(OURS, sys.executable), str(HERE.parent), verbose)


def columns(names: list[str], folder: Path, verbose: bool) -> dict[str, Column]:
    """Try one library after the other. If one can't be installed, each of its cells says so."""
    found = {}
    for name in names:
        if name == OURS:
            found[name] = ours(verbose)
            continue
        try:
            command = installed(name, folder)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            print(f"{name}: {getattr(error, 'stderr', error)}", file=sys.stderr)
            found[name] = {row.title: f"{NOT_ASKED} not installed" for row in ROWS}
        else:
            print(f"{name}: asking", file=sys.stderr)
            found[name] = column(command, "" if "==" in PINS[name][0] else str(folder / name), verbose)
    return found


# The page: its tables stand between two marks and are made of what is noted in `SEEN`.


def note(found: dict[str, Column]) -> None:
    """Store columns with their date, and keep those of other libraries."""
    known = noted()
    for name, cells in found.items():
        known[name] = {"on": date.today().isoformat(), "pins": PINS.get(name, []), "cells": cells}
    ordered = {name: known[name] for name in [OURS, *PINS] if name in known}
    SEEN.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def noted() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(SEEN.read_text(encoding="utf-8")) if SEEN.exists() else {}
    return known


def page(text: str) -> str:
    """Return the page with tables of the stored results."""
    known = noted()
    columns = {name: known[name]["cells"] for name in known}
    tables = [
        *("## Versions", _versions(known)),
        *("## Conversations", _table(CONVERSATIONS, columns), _details(CONVERSATIONS, columns)),
        *("## Streams", _table(STREAMS, columns), _details(STREAMS, columns)),
    ]
    head, mark, rest = text.partition(_BEGIN)
    return f"{head}{mark}\n\n" + "\n\n".join(tables) + f"\n\n{_END}" + rest.partition(_END)[2]


def _versions(known: dict[str, Any]) -> str:
    rows = [
        f"| {name} | {', '.join(map(str, each['pins'])) or 'this checkout'} | {each['on']} |"
        for name, each in known.items()
    ]
    return "\n".join(["| library | packages | tried on |", "|---|---|---|", *rows])


def _table(rows: Sequence[Row], columns: dict[str, Column]) -> str:
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for row in rows:
        marks = [row.mark(cells.get(row.title, NOT_ASKED)) for cells in columns.values()]
        lines.append(f"| {row.title} | {' | '.join(marks)} |")
    return "\n".join(lines)


def _details(rows: Sequence[Row], columns: dict[str, Column]) -> str:
    """Return for each row its input, and each outcome with the libraries that had it."""
    lines = []
    for row in rows:
        lines.append(f"- **{row.title}.** {row.given}")
        who: dict[str, list[str]] = {}
        for name, cells in columns.items():
            who.setdefault(cells.get(row.title, NOT_ASKED), []).append(name)
        for words in sorted(who, key=lambda words: "✓○✗–".index(row.mark(words))):
            if words != NOT_ASKED:
                shown = words if words.startswith(NOT_ASKED) else f"{row.mark(words)} {words}"
                lines.append(f"  - {shown}: {', '.join(who[words])}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([OURS, *PINS]))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "harnpy-dialects")
    parser.add_argument("--verbose", action="store_true", help="show answers and requests")
    parser.add_argument("--write", action="store_true", help=f"write the results into {PAGE.name}")
    options = parser.parse_args()
    found = columns(options.names or [OURS, *PINS], options.folder, options.verbose)
    if options.write:
        note(found)
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    elif not options.verbose:
        for rows in (CONVERSATIONS, STREAMS):
            print(_table(rows, found), _details(rows, found), sep="\n\n", end="\n\n")


if __name__ == "__main__":
    main()
