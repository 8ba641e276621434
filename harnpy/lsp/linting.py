"""What the linter and the preflight say of a document, asked while nobody types. Spec: 12 §3.1.

They look at whole files, which takes long: a `Linter` works in steps, and gives up where something else is to
be done. What it finds is kept with the items that it is about, and goes with them when those are edited.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harnpy.builtins import catalog
from harnpy.check.allow import silenced
from harnpy.check.edits import placed
from harnpy.check.lint.requested import LintSettings
from harnpy.check.lint.rules import by_rule, in_order
from harnpy.check.lint.subject import Subject
from harnpy.lsp.advice import Advice
from harnpy.lsp.workspace import program_paths
from harnpy.preflight import preflight_findings
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.vm import modules
from harnpy.vm.modules import Modules
from harnpy.vm.vm import Vm
from harnpy.world import World
from harnpy.world.files import TextFiles

if TYPE_CHECKING:
    from harnpy.check.findings import Finding
    from harnpy.check.knowledge import Knowledge
    from harnpy.check.lint.settings import Settings
    from harnpy.lsp.document import Document
    from harnpy.lsp.workspace import Workspace

_WORD = re.compile(r"[^\W\d]\w*")
_VISIBLE = re.compile(r"[^\r\n]")
_NAMES = re.compile(r"import\s*\{[^{}\"]*\}\s*from\s*\"[^\"\n]*\"")
#: Texts of modules that are remembered.
_REMEMBERED = 256


class Question(NamedTuple):
    """A text to lint, and what that depends on. Nothing in it changes.

    ``readable`` is the text with blanks for the pieces that don't parse, ``unread`` are the words in those;
    ``nodes`` are the items of all others, each with how far it is away from where its offsets say.
    ``open`` are the texts that the editor holds, by path.
    """

    source: str
    readable: str
    nodes: Sequence[tuple[ast.Node, int]]
    unread: frozenset[str]
    path: str | None
    knowledge: Knowledge
    settings: Settings
    roots: Sequence[str]
    open: Mapping[str, str]


def question(workspace: Workspace, document: Document) -> Question:
    """Return what has to be known to lint a document as it is now."""
    source = readable = document.source
    unread: set[str] = set()
    for piece in document.checked.draft.broken:
        unread.update(_WORD.findall(piece.text))
        readable = readable[: piece.start] + _VISIBLE.sub(" ", piece.text) + readable[piece.end :]
    return Question(
        source,
        readable,
        [(item.node, item.moved) for item in document.items if not item.broken],
        frozenset(unread),
        document.path,
        document.knowledge,
        LintSettings(workspace.manifests).of(document.path or "."),
        tuple(workspace.roots),
        workspace.open_texts(),
    )


class Abandoned(Exception):
    """The client has sent something: the linter makes room."""


def _require(wanted: Callable[[], bool]) -> None:
    if not wanted():
        raise Abandoned


class Linter:
    """Answers questions, one after the other."""

    def __init__(self) -> None:
        self._surfaces: dict[str, modules.Surface] = {}
        self._imports: dict[str, tuple[object, list[ast.Import]]] = {}

    def findings(self, question: Question, wanted: Callable[[], bool] = lambda: True) -> list[Finding]:
        """Return what the linter and the preflight say of a text, by offsets in it.

        Raises Abandoned as soon as the answer isn't ``wanted`` any longer.
        """
        readable = question.readable
        items = []
        for node, moved in question.nodes:
            items.append(placed(node, moved))
            _require(wanted)
        program = ast.Program(0, len(readable), tuple(items))
        file = question.path or "untitled.harn"
        directory = os.path.dirname(question.path) if question.path else os.getcwd()
        vm = Vm(catalog, World(files=TextFiles(question.open, disk=True)))
        known = Modules(self._surface)
        imports = known.brought(vm, tuple(modules.requests_of(program.items)), directory)
        _require(wanted)
        consumed = self._consumed(question, program, vm, known)
        subject = Subject(readable, program, file, question.knowledge, imports, question.settings, consumed)
        found = []
        for findings in by_rule(subject):
            found += findings
            _require(wanted)
        found = in_order(found)
        found += preflight_findings(vm, known, program, file, directory)
        return [
            each
            for each in silenced(readable, found)
            if not question.unread or question.unread.isdisjoint(_WORD.findall(each.message))
        ]

    def _surface(self, text: str) -> modules.Surface:
        """Return what a module declares."""
        if text not in self._surfaces:
            if len(self._surfaces) > _REMEMBERED:
                self._surfaces.clear()
            self._surfaces[text] = modules.read_surface(text, parse)
        return self._surfaces[text]

    def _consumed(self, question: Question, program: ast.Program, vm: Vm, known: Modules) -> Collection[str]:
        """Return the names of a file that others of the workspace import one by one."""
        if question.path is None:
            return ()
        own = {name for node in program.items if isinstance(name := getattr(node, "name", None), str)}
        place = os.path.realpath(question.path)
        found: set[str] = set()
        for path in program_paths(question.roots, question.open):
            for node in self._importing(path, question.open.get(path)):
                names = own.intersection(node.names or ())
                if names - found:
                    module = known.look(vm, node.path, os.path.dirname(path))
                    if module is not None and module.name == place:
                        found |= names
        return found

    def _importing(self, path: str, text: str | None) -> list[ast.Import]:
        """Return the imports of a file that list names; those of a file on disk are read when it changes."""
        if text is not None:
            return list(_imports_in(text))
        try:
            status = os.stat(path)
            stamp = status.st_mtime_ns, status.st_size
            if path not in self._imports or self._imports[path][0] != stamp:
                with open(path, encoding="utf-8", errors="replace") as file:
                    self._imports[path] = stamp, list(_imports_in(file.read()))
        except OSError:
            return []
        return self._imports[path][1]


def _imports_in(text: str) -> Iterator[ast.Import]:
    for match in _NAMES.finditer(text):
        try:
            yield from (node for node in parse(match[0]).items if isinstance(node, ast.Import))
        except SyntaxFault:
            continue


def linted(workspace: Workspace, document: Document, linter: Linter | None = None) -> None:
    """Lint a document here and now."""
    found = (linter or Linter()).findings(question(workspace, document))
    document.advice = Advice(document.source, document.items, found)
