"""The modules of one program: each read once, loaded once, known by its canonical path. Spec: 06 §4-§7.

A `Module` is looked at before it is loaded: its surface tells the importing file, while that is compiled,
which names it will have. Loading runs it.
"""

from __future__ import annotations

from harnpy.vm.errors import RuntimeFault
from harnpy.vm.modules import paths
from harnpy.vm.modules.offers import Imports, Offer
from harnpy.vm.modules.surface import surface_of
from harnpy.world.files import RealFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.syntax.errors import CompileFault, SourceFault
    from harnpy.vm.modules.paths import Place
    from harnpy.vm.modules.surface import Request, Surface
    from harnpy.vm.unit import Unit
    from harnpy.vm.values.objects import Fn
    from harnpy.vm.vm import Vm

    Names = tuple[str, ...] | None

_NEW, _LOADING, _LOADED = range(3)


class Module:
    """One module of a program. ``functions`` and ``exports`` fill when it is loaded."""

    __slots__ = ("exports", "functions", "place", "source", "stage", "surface")

    def __init__(self, place: Place, source: str) -> None:
        self.place = place
        self.source = source
        self.surface: Surface = surface_of(source)
        self.functions: dict[str, Fn] = {}
        self.exports: dict[str, Fn] = {}
        self.stage = _NEW

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def is_loaded(self) -> bool:
        return self.stage == _LOADED


class Modules:
    """The modules of one program run."""

    def __init__(self) -> None:
        self._known: dict[str, Module] = {}

    # --- before anything runs -------------------------------------------------------------------------

    def imports_of(self, vm: Vm, source: str, directory: str) -> Imports:
        """What the imports of a text in ``directory`` bring."""
        return self._brought(vm, surface_of(source).requests, directory)

    def _brought(self, vm: Vm, requests: tuple[Request, ...], directory: str) -> Imports:
        brought = Imports()
        for path, names, _, start in requests:
            module = self.look(vm, path, directory)
            brought.complete &= module is not None
            offer = brought.offers[start] = Offer()
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
        return offer

    def look(self, vm: Vm, path: str, directory: str) -> Module | None:
        """The module that a path leads to; None when there is none that can be read."""
        place = paths.find(vm.world.files, path, directory)
        try:
            return None if place is None else self._module(vm, place)
        except (OSError, UnicodeDecodeError):
            return None

    def _module(self, vm: Vm, place: Place) -> Module:
        """Raises OSError and UnicodeDecodeError when it can't be read."""
        module = self._known.get(place.name)
        if module is None:
            module = self._known[place.name] = Module(place, _text(vm, place))
        return module

    # --- while programs run ---------------------------------------------------------------------------

    def open(self, vm: Vm, path: str, directory: str) -> Module:
        """The module that an import statement means. Raises RuntimeFault."""
        place = paths.find(vm.world.files, path, directory)
        if place is None and path.startswith(paths.BUNDLED):
            raise RuntimeFault(f"Unknown stdlib module: {path}")
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

    def load(self, vm: Vm, module: Module) -> bool:
        """Run a module, unless it was; False while it is being loaded: the import is part of a circle."""
        if module.stage == _NEW:
            module.stage = _LOADING
            try:
                _run(vm, module, self._brought(vm, module.surface.requests, module.place.directory))
            except BaseException:
                # A REPL goes on: its next import is to see the file as it is then.
                del self._known[module.name]
                raise
            module.stage = _LOADED
        return module.is_loaded


def _own(surface: Surface, every: bool) -> Offer:
    """What a module offers of its own; ``every``: also what has to be listed."""
    offer = Offer()
    chosen = surface.functions if every or surface.is_open else surface.public
    offer.functions = {name: surface.functions[name] for name in chosen}
    offer.names = dict.fromkeys([*surface.offered, *(surface.hidden if every else ())])
    offer.structs, offer.aliases = surface.structs, surface.aliases
    offer.interfaces = dict.fromkeys(surface.interfaces)
    return offer


def _text(vm: Vm, place: Place) -> str:
    # A bundled module is part of the interpreter: no world can hide it.
    files = RealFiles() if place.bundled else vm.world.files
    return files.read_text(place.path)


def _run(vm: Vm, module: Module, brought: Imports) -> None:
    from harnpy.vm.modules.links import Linker
    from harnpy.vm.run.namespace import namespace

    unit = _compiled(vm, module, brought)
    unit.directory = None if module.place.bundled else module.place.directory
    unit.module = module.name
    space: dict[str, Any] = namespace(vm, unit, {}, Linker(vm, unit, set(), module))
    space["m"] = {}
    exec(unit.code, space)  # noqa: S102
    space["main"](1)


def _compiled(vm: Vm, module: Module, brought: Imports) -> Unit:
    from harnpy.syntax.errors import SourceFault
    from harnpy.vm.compile import module_unit

    try:
        return module_unit(module.source, module.name, vm.builtins, brought)
    except SourceFault as fault:
        where = f" in {module.name}" if module.place.bundled else ""
        raise RuntimeFault(f"Import {_stage(fault)} error{where}: {fault.message}") from None


def _stage(fault: SourceFault) -> str:
    """What of compiling a module failed, in the words of 06 §6."""
    from harnpy.syntax.errors import CompileFault, LexFault

    if not isinstance(fault, CompileFault):
        return "lex" if isinstance(fault, LexFault) else "parse"
    return "init compile" if _in_initialiser(fault) else "compile"


def _in_initialiser(fault: CompileFault) -> bool:
    from harnpy.syntax import ast
    from harnpy.syntax.parser import parse_cached
    from harnpy.syntax.span import Lines

    lines = Lines(fault.source)
    lets = [item for item in parse_cached(fault.source).items if isinstance(item, ast.Let)]
    return any(lines.line(let.start) <= fault.line <= lines.line(let.end) for let in lets)


def _unreadable(path: str, reason: str) -> RuntimeFault:
    return RuntimeFault(f"Import error: cannot read '{path}': {reason}")
