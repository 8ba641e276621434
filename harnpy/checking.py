"""`Checker`: the static checks as a library. Texts go in, diagnostics come out; no file is needed. Spec: 03.

    checker = Checker()
    checker.check({"main.harn": 'printn("hi")'})["main.harn"][0].message

An editor keeps one and calls `check` at every keystroke: what an edit left as it was isn't checked again.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harnpy.builtins import catalog
from harnpy.check.allow import silenced
from harnpy.check.checker import check_item, check_together, ordered
from harnpy.check.edits import Draft, Item, Piece, placed
from harnpy.check.environment import Environment, Surface, declared_by, file_variables
from harnpy.check.findings import Finding
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Diagnostic, Lines, SourceFault
from harnpy.syntax.parser import parse
from harnpy.syntax.structure import check_structure
from harnpy.vm import modules
from harnpy.vm.imports import Imports
from harnpy.vm.modules import Modules
from harnpy.vm.vm import Vm
from harnpy.world import World
from harnpy.world.files import TextFiles

if TYPE_CHECKING:
    from harnpy.check.knowledge import Knowledge
    from harnpy.vm.modules import Request

    #: Brings what the imports of one file ask for.
    Bring = Callable[[Sequence[Request]], Imports]

_NO_BREAK = re.compile(r"[^\n]")
_WORD = re.compile(r"[^\W\d]\w*")
#: What is said of a name that is declared nowhere.
_UNDECLARED = frozenset(["undefined-call", "undefined-name", "unknown-struct"])
_TYPES = (ast.StructDecl, ast.EnumDecl, ast.InterfaceDecl, ast.TypeDecl, ast.ImplDecl)
#: Texts of modules that are remembered besides those being checked, the `std/*` ones among them.
_REMEMBERED = 64


class Checker:
    """Checks programs without running them.

    ``strict``: also what is read from unvalidated values (03 §8.5). ``disk``: imports are looked for in the
    file system, too, and not only among the texts. ``vm``: whose builtins and globals programs may use, an
    embedder's own ones among them; by default those of the language.
    """

    def __init__(self, *, strict: bool = False, disk: bool = False, vm: Vm | None = None) -> None:
        self._strict = strict
        self._disk = disk
        self._vm = Vm(catalog) if vm is None else vm
        self._files: dict[str, CheckedFile] = {}
        self._surfaces: dict[str, modules.Surface] = {}

    def check(self, sources: Mapping[str, str]) -> dict[str, list[Diagnostic]]:
        """Return the findings in each of ``sources``, texts by path; an empty list when all is well.

        Paths are relative to the working directory; imports find the texts by them.
        """
        files = TextFiles(sources, self._disk)
        reader = Vm(catalog, World(files=files))
        modules = Modules(self._surface)
        found = {}
        for path, text in sources.items():
            directory = os.path.dirname(os.path.join(files.cwd(), path))

            def bring(requests: Sequence[Request], directory: str = directory) -> Imports:
                return modules.brought(reader, tuple(requests), directory)

            found[path] = self._check(path, text, bring)
        self._files = {path: self._files[path] for path in sources if path in self._files}
        return found

    def _check(self, path: str, text: str, bring: Bring) -> list[Diagnostic]:
        """Return the findings in one text. A file that doesn't parse is read anew next time."""
        knowledge = self._vm.builtins.knowledge()
        file = self._files.pop(path, None) or CheckedFile(knowledge, strict=self._strict)
        file.edit(text, bring)
        if file.draft.broken:
            try:
                parse(text, file=path)
            except SourceFault as fault:
                return fault.diagnostics
            file.edit(text, bring, undivided=True)
        misplaced = file.misplaced(path)
        if misplaced:
            return misplaced
        self._files[path] = file
        lines = Lines(text)
        return [finding.diagnostic(lines) for finding in file.findings()]

    def _surface(self, text: str) -> modules.Surface:
        """Return what a module declares."""
        if text not in self._surfaces:
            if len(self._surfaces) > 2 * len(self._files) + _REMEMBERED:
                self._surfaces.clear()
            self._surfaces[text] = modules.read_surface(text, parse)
        return self._surfaces[text]


class CheckedFile:
    """One file, from edit to edit.

    ``environment`` is what its items see, ``draft`` its text. What was found in an item holds as long as it
    isn't edited and what it sees of the others stays the same.
    """

    environment: Environment

    def __init__(self, knowledge: Knowledge, *, strict: bool = False) -> None:
        self.draft = Draft()
        self._knowledge = knowledge
        self._strict = strict
        self._brought = ""
        self._foreign: frozenset[str] = frozenset()
        self._seen: dict[Item, tuple[Surface, list[Request]]] = {}

    def edit(self, text: str, bring: Bring, *, undivided: bool = False) -> None:
        """Take ``text`` as the new one, and what ``bring`` brings for its imports."""
        draft = self.draft
        draft.edit(text, undivided=undivided)
        before = [self._seen.pop(item)[0] for item in draft.replaced]
        for item in draft.fresh:
            self._seen[item] = Surface(item.node), list(modules.requests_of([item.node]))
        self._forget(before, [self._seen[item][0] for item in draft.fresh])
        brought = bring([request for item in draft.items for request in self._seen[item][1]])
        if brought.fingerprint() != self._brought:
            self._brought = brought.fingerprint()
            for item in draft.items:
                item.findings = None
        # Made anew after each edit: it points to declarations, and those of edited items are others now.
        self.environment = Environment(
            [item.node for item in draft.items],
            self._knowledge,
            brought,
            strict=self._strict,
            surfaces=[self._seen[item][0] for item in draft.items],
        )
        self._foreign = self.environment.foreign_functions

    def supposing(self, piece: Piece, nodes: Sequence[ast.Node]) -> Environment:
        """Return what items would see if a piece had other ones. Nothing changes."""
        items: list[tuple[ast.Node, Surface]] = []
        for each in self.draft.pieces:
            if each is piece:
                items += [(node, Surface(node)) for node in nodes]
            else:
                items += [(item.node, self._seen[item][0]) for item in each.items]
        return Environment(
            [node for node, _ in items],
            self._knowledge,
            self.environment.imported,
            strict=self._strict,
            surfaces=[surface for _, surface in items],
        )

    def misplaced(self, file: str) -> list[Diagnostic]:
        """Return what breaks a rule of structure in the items that are new (01 §10)."""
        draft = self.draft
        nodes = [placed(item.node, item.moved) for item in draft.fresh]
        program = ast.Program(0, len(draft.source), tuple(nodes))
        faults = check_structure(program, draft.source, file)
        return [each for fault in faults for each in fault.diagnostics]

    def findings(self) -> list[Finding]:
        """Return what is to be said of the items that parse, by offsets in the text."""
        draft = self.draft
        found = [finding for item in draft.items if not item.broken for finding in self._found(item)]
        for finding in check_together(self.environment):
            found.append(finding.shifted(draft.place(finding.start) - finding.start, draft.place))
        broken = draft.broken
        if broken:
            doubt = _Doubt(broken)
            found = [finding for finding in found if not doubt.about(finding, draft.source)]
        return silenced(draft.source, ordered(found), [piece.end for piece in draft.pieces])

    def _forget(self, before: Sequence[Surface], after: Sequence[Surface]) -> None:
        """Forget what was found where an edit shows; the surfaces are of the items before and after it."""
        draft = self.draft
        if before == after:
            # Any finding may point to where a name is declared, if only there is such a place.
            same_names = all(
                one.places.keys() == other.places.keys() for one, other in zip(before, after, strict=True)
            )
            for item in draft.items:
                if item.findings and not (same_names and _stays(item.findings, draft.replaced)):
                    item.findings = None
            return
        touched = self._touched([*_without_ends(before, after), *_without_ends(after, before)])
        for piece in draft.pieces:
            for item in piece.items:
                # What was found may suggest any other name, or say where it is.
                if item.findings or touched is None or not touched.isdisjoint(piece.words):
                    item.findings = None

    def _touched(self, changed: Sequence[Surface]) -> set[str] | None:
        """Return the names that may mean something else when surfaces change; None if any may."""
        if self._strict or not all(surface.is_local for surface in changed):
            return None
        touched = {name for surface in changed for name in surface.names}
        if any(surface.types or surface.methods for surface in changed):
            # A module may import this file, and return its types.
            touched |= self._foreign
        # A signature may name a type that has changed, a literal another one.
        others = [surface for surface, _ in self._seen.values()]
        while grown := [one for one in others if not (touched.isdisjoint(one.shown) or one.names <= touched)]:
            touched.update(*(one.names for one in grown))
        return touched

    def _found(self, item: Item) -> list[Finding]:
        if item.findings is None:
            item.findings = check_item(item.node, self.environment)
        return [finding.shifted(item.moved, self.draft.place) for finding in item.findings]


def _without_ends(surfaces: Sequence[Surface], others: Sequence[Surface]) -> Sequence[Surface]:
    """Return the surfaces without those at both ends that others begin and end with, too."""
    room = min(len(surfaces), len(others))
    first = next((i for i in range(room) if surfaces[i] != others[i]), room)
    room -= first
    last = next((i for i in range(room) if surfaces[-1 - i] != others[-1 - i]), room)
    return surfaces[first : len(surfaces) - last]


class _Doubt:
    """What isn't known for sure while some pieces are broken (12 §2).

    They may declare any name that stands in them, and what they declare may look otherwise when written.
    """

    def __init__(self, broken: Sequence[Piece]) -> None:
        self._mentioned = {word for piece in broken for word in piece.words}
        self._uncertain = {name for piece in broken for item in piece.items for name in _unsure(piece, item)}

    def about(self, finding: Finding, source: str) -> bool:
        """Return whether a finding is about any of that."""
        words = _WORD.findall(source[finding.start : finding.end])
        if finding.code in _UNDECLARED:
            return bool(words) and words[0] in self._mentioned
        return not self._uncertain.isdisjoint([*words, *_WORD.findall(finding.message)])


def _unsure(piece: Piece, item: Item) -> Iterator[str]:
    """Yield what an item of a broken piece declares, unless it is broken in the body of a function alone."""
    if isinstance(item.node, _TYPES):
        yield from piece.words
        return
    body = getattr(item.node, "body", None)
    first = min((fault.span.start for fault in piece.faults if fault.span is not None), default=0)
    begins = body.start + item.moved - piece.start if isinstance(body, ast.Block) else -1
    # Mending puts in a `{` that takes no room.
    if not piece.text.startswith("{", max(begins, 0)) or begins < 0 or first <= begins:
        for let in file_variables(item.node):
            yield from ast.bound_names(let.target)
        yield from declared_by(item.node)


def _stays(findings: Sequence[Finding], replaced: Sequence[Item]) -> bool:
    """Return whether no finding points into an item that is gone."""
    places = [place for finding in findings for place in finding.places if place.file is None]
    return not any(gone.node.start <= place.start <= gone.node.end for place in places for gone in replaced)
