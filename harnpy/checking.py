"""`Checker`: the static checks as a library. Texts go in, diagnostics come out; no file is needed. Spec: 03.

    checker = Checker()
    checker.check({"main.harn": 'printn("hi")'})["main.harn"][0].message

An editor keeps one and calls `check` at every keystroke: what an edit left as it was isn't checked again.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harnpy.builtins import catalog
from harnpy.check.allow import silenced
from harnpy.check.checker import check_item, check_together, ordered
from harnpy.check.edits import Draft, Item, placed
from harnpy.check.environment import Environment
from harnpy.check.findings import Finding
from harnpy.check.surface import Surface
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
        self._files: dict[str, _File] = {}
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

            file = self._files.setdefault(path, _File(path, self._vm.builtins.knowledge(), self._strict))
            found[path] = file.check(text, bring)
        self._files = {path: self._files[path] for path in sources}
        return found

    def _surface(self, text: str) -> modules.Surface:
        """Return what a module declares."""
        if text not in self._surfaces:
            if len(self._surfaces) > 2 * len(self._files) + _REMEMBERED:
                self._surfaces.clear()
            self._surfaces[text] = modules.read_surface(text, parse)
        return self._surfaces[text]


class _File:
    """One file, from edit to edit.

    ``_seen`` is what the other items see of each, and what it imports. That holds for an item as long as it
    isn't edited; so does what was found in it, as long as what it sees of the others stays the same.
    """

    def __init__(self, path: str, knowledge: Knowledge, strict: bool) -> None:
        self._path = path
        self._knowledge = knowledge
        self._strict = strict
        self._draft: Draft | None = None
        self._brought = ""
        self._seen: dict[Item, tuple[Surface, list[Request]]] = {}

    def check(self, text: str, bring: Bring) -> list[Diagnostic]:
        """Return what is to be said of ``text``."""
        try:
            draft = self._edited(text)
        except SourceFault as fault:
            return fault.diagnostics
        brought = bring([request for item in draft.items for request in self._seen[item][1]])
        if brought.fingerprint() != self._brought:
            self._brought = brought.fingerprint()
            for item in draft.items:
                item.findings = None
        # Made anew after each edit: it points to declarations, and those of edited items are others now.
        environment = Environment(
            [item.node for item in draft.items],
            self._knowledge,
            brought,
            strict=self._strict,
            surfaces=[self._seen[item][0] for item in draft.items],
        )
        found = [finding for item in draft.items for finding in _found(item, draft, environment)]
        for finding in check_together(environment):
            found.append(finding.shifted(draft.place(finding.start) - finding.start, draft.place))
        lines = Lines(text)
        return [finding.diagnostic(lines) for finding in silenced(text, ordered(found))]

    def _edited(self, text: str) -> Draft:
        """The draft with ``text``. Forgets the findings that the edit may change. Raises SourceFault."""
        if self._draft is None:
            self._draft = Draft(text, self._path)
        else:
            self._draft.edit(text)
        draft, self._draft = self._draft, None
        nodes = [placed(item.node, item.moved) for item in draft.fresh]
        faults = check_structure(ast.Program(0, len(text), tuple(nodes)), text, self._path)
        if faults:
            found = [each for fault in faults for each in fault.diagnostics]
            raise SourceFault(faults[0].message, found, text, self._path)
        before = [self._seen.pop(item)[0] for item in draft.replaced]
        if not before:
            self._seen.clear()
        for item in draft.fresh:
            self._seen[item] = Surface(item.node), list(modules.requests_of([item.node]))
        _forget(draft, before, [self._seen[item][0] for item in draft.fresh])
        self._draft = draft
        return draft


def _found(item: Item, draft: Draft, environment: Environment) -> list[Finding]:
    if item.findings is None:
        item.findings = check_item(item.node, environment)
    return [finding.shifted(item.moved, draft.place) for finding in item.findings]


def _forget(draft: Draft, before: list[Surface], after: list[Surface]) -> None:
    """Forget what was found where an edit shows; the surfaces are those of the items before and after it."""
    if before != after:
        for item in draft.items:
            item.findings = None
        return
    # Any finding may point to where a name is declared, if only there is such a place.
    same_names = all(
        one.places.keys() == other.places.keys() for one, other in zip(before, after, strict=True)
    )
    for item in draft.items:
        if item.findings and not (same_names and _stays(item.findings, draft.replaced)):
            item.findings = None


def _stays(findings: Sequence[Finding], replaced: Sequence[Item]) -> bool:
    """Return whether no finding points into an item that is gone."""
    places = [place for finding in findings for place in finding.places if place.file is None]
    return not any(gone.node.start <= place.start <= gone.node.end for place in places for gone in replaced)
