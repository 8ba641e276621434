"""The modules of one program: each read once, known by its canonical path. Spec: 06 §3-§6.

A module is looked at before it is loaded: its surface shows the importing file, while that is compiled,
which names it will have. `linker` loads it.
"""

from __future__ import annotations

from harnpy.vm.errors import RuntimeFault
from harnpy.vm.modules import paths
from harnpy.vm.modules.offers import Imports, Offer
from harnpy.vm.modules.surface import surface_of
from harnpy.world.files import RealFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.modules.paths import Place
    from harnpy.vm.modules.surface import Request, Surface
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm

    Names = tuple[str, ...] | None

NEW, LOADING, LOADED = range(3)


class Module:
    """One module of a program. ``functions``, ``exports`` and ``tools`` fill when it is loaded."""

    __slots__ = ("exports", "functions", "place", "source", "stage", "surface", "tools")

    def __init__(self, place: Place, source: str, surface: Surface) -> None:
        self.place = place
        self.source = source
        self.surface = surface
        self.functions: dict[str, Fn] = {}
        self.exports: dict[str, Fn] = {}
        #: The registry of one tool that each `tool` declaration binds; no import brings them.
        self.tools: dict[str, Any] = {}
        self.stage = NEW

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def is_loaded(self) -> bool:
        return self.stage == LOADED


class Modules:
    """The modules of one program run. ``surface`` reads what a text declares."""

    def __init__(self, surface: Callable[[str], Surface] = surface_of) -> None:
        self._known: dict[str, Module] = {}
        self._surface = surface

    def imports_of(self, vm: Vm, source: str, directory: str) -> Imports:
        """What the imports of a text in ``directory`` bring."""
        return self.brought(vm, self._surface(source).requests, directory)

    def brought(self, vm: Vm, requests: tuple[Request, ...], directory: str) -> Imports:
        """What the imports that a file of ``directory`` asks for bring."""
        brought = Imports()
        for path, names, _, start in requests:
            module = self.look(vm, path, directory)
            offer = brought.offers[start] = Offer(None if module is None else module.name, module is not None)
            if module is not None:
                offer.add(self.offer(vm, module, names))
        return brought

    def offer(self, vm: Vm, module: Module, names: Names) -> Offer:
        """What importing all of a module, or the listed names, brings."""
        exported = self._exported(vm, module, set())
        if names is None:
            return exported
        listed = Offer()
        own = _own(module.surface, every=True)
        listed.add(exported, names)
        listed.add(own, names)
        return listed

    def _exported(self, vm: Vm, module: Module, seen: set[str]) -> Offer:
        """The names that a module has or passes on; a circle of re-exports adds nothing."""
        seen.add(module.name)
        offer = _own(module.surface, every=False)
        for path, names, pub, _ in module.surface.requests:
            source = self.look(vm, path, module.place.directory) if pub else None
            if source is not None and source.name not in seen:
                offer.add(self._exported(vm, source, seen), names)
            offer.whole &= not pub or source is not None
        return offer

    def look(self, vm: Vm, path: str, directory: str) -> Module | None:
        """The module that a path leads to; None when there is none that can be read."""
        place = paths.find(vm.unguarded.files, path, directory)
        try:
            return None if place is None else self._module(vm, place)
        except (OSError, UnicodeDecodeError):
            return None

    def _module(self, vm: Vm, place: Place) -> Module:
        """Raises OSError and UnicodeDecodeError when it can't be read."""
        module = self._known.get(place.name)
        if module is None:
            text = _text(vm, place)
            module = self._known[place.name] = Module(place, text, self._surface(text))
            vm.notice(module.source)
        return module

    def open(self, vm: Vm, path: str, directory: str) -> Module:
        """The module that an import statement means. Raises RuntimeFault."""
        place = paths.find(vm.unguarded.files, path, directory)
        if place is None and path.startswith(paths.BUNDLED):
            raise RuntimeFault(paths.unknown_module(path))
        file = paths.expected(path, directory) if place is None else place.path
        try:
            # Reading what isn't there brings the system's own words for it.
            return self._module(vm, place or paths.Place(file, file))
        except OSError as error:
            raise _unreadable(file, f"{error.strerror} (os error {error.errno})") from None
        except UnicodeDecodeError:
            raise _unreadable(file, "stream did not contain valid UTF-8") from None
        except ValueError:
            raise _unreadable(file, "file name contained an unexpected NUL byte") from None

    def forget(self, module: Module) -> None:
        """Read a module again when it is next asked for."""
        del self._known[module.name]


def _own(surface: Surface, every: bool) -> Offer:
    """What a module offers of its own; ``every``: also what has to be listed."""
    offer = Offer(whole=surface.is_program)
    chosen = surface.functions if every or surface.is_open else surface.public
    offer.functions = {name: surface.functions[name] for name in chosen}
    offer.names = dict.fromkeys([*surface.offered, *(surface.hidden if every else ())])
    offer.types = surface.types
    return offer


def _text(vm: Vm, place: Place) -> str:
    # A bundled module is part of the interpreter: no world can hide it.
    files = RealFiles() if place.bundled else vm.unguarded.files
    return files.read_text(place.path)


def _unreadable(path: str, reason: str) -> RuntimeFault:
    return RuntimeFault(f"Import error: cannot read '{path}': {reason}")
