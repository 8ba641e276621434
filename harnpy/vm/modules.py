"""Modules: where an import path leads, what a module declares, and loading it. Spec: 06 §2-§7.

A module is read once and known by its canonical path. It is looked at before it is loaded: its surface tells
the importing file, while that is compiled, which names it will have. The `Linker` of a file does its imports
when it runs; a `Library` is a file that an embedder loads like a module.
"""

from __future__ import annotations

import os.path

from harnpy import cache, shipped
from harnpy.project import MANIFEST, upwards
from harnpy.syntax.diagnostic import CompileFault, LexFault, SourceFault
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.imports import Imports, Offer
from harnpy.vm.unit import LANGUAGE
from harnpy.world.files import RealFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Never

    from harnpy.syntax import ast
    from harnpy.vm.imports import Params
    from harnpy.vm.unit import Unit
    from harnpy.vm.values import Fn, Value
    from harnpy.vm.vm import Vm
    from harnpy.world.files import Files

    #: Path, listed names (None: all), whether it is re-exported, and where it stands.
    Request = tuple[str, tuple[str, ...] | None, bool, int]
    Names = tuple[str, ...] | None
    #: Of each name that a file expects of an import: the parameters, and whether the last takes the rest.
    Wanted = dict[str, tuple[tuple[str, ...], bool]]

# Where an import path leads: bundled modules, files, installed packages. Spec: 06 §3.
#
# Only package manifests are read here; the world knows what exists. Bundled modules are part of the
# interpreter, like the grammar, and no world can hide them.


BUNDLED = "std/"
EXTENSION = ".harn"
_PACKAGES = os.path.join(".harn", "packages")
_ENTRANCE = "lib" + EXTENSION


class Place:
    """The place of a module. ``name`` is its identity, also in messages; ``path`` the file to read."""

    __slots__ = ("bundled", "name", "path")

    def __init__(self, name: str, path: str, bundled: bool = False) -> None:
        self.name = name
        self.path = path
        self.bundled = bundled

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)


def find_module(files: Files, path: str, directory: str) -> Place | None:
    """The module that ``import "path"`` means in a file of ``directory``; None when nothing is there."""
    if path.startswith(BUNDLED):
        return _bundled(path)
    for candidate in (os.path.join(directory, path), expected_files(path, directory)):
        if files.exists(candidate):
            return _file(files, candidate)
    return _installed(files, path, directory)


def expected_files(path: str, directory: str) -> str:
    """The file that an import would have needed, when nothing is there."""
    return _with_extension(os.path.join(directory, path))


def _with_extension(path: str) -> str:
    return path if os.path.splitext(path)[1] else path + EXTENSION


def _file(files: Files, path: str) -> Place:
    canonical = files.real_path(path)
    return Place(canonical, canonical)


def bundled_names() -> list[str]:
    """Return what `import "std/…"` may name, sorted."""
    top = shipped.library()
    files = (file.removeprefix(top).lstrip("/") for file in RealFiles().files_under(top))
    return sorted(BUNDLED + file.removesuffix(EXTENSION) for file in files if file.endswith(EXTENSION))


def bundled_with(function: str) -> str | None:
    """Return the first bundled module that declares a public function of that name; None if none does."""
    import re

    declared = re.compile(rf"^pub (?:gen )?fn {re.escape(function)}\b", re.MULTILINE)
    for name in bundled_names():
        place = _bundled(name)
        if place and declared.search(RealFiles().read_text(place.path)):
            return name
    return None


def unknown_module(path: str) -> str:
    """Return the message for a bundled module that isn't there."""
    return f"Unknown stdlib module: {path}"


def _bundled(path: str) -> Place | None:
    parts = path.removeprefix(BUNDLED).split("/")
    if not all(part.isidentifier() for part in parts):
        return None
    file = os.path.join(shipped.library(), *parts) + EXTENSION
    return Place(f"<stdlib>/{'/'.join(parts)}{EXTENSION}", file, True) if RealFiles().is_file(file) else None


# --- installed packages -----------------------------------------------------------------------------


def _installed(files: Files, path: str, directory: str) -> Place | None:
    """Return what the packages of this directory or one above offer, up to a repository's root."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or os.path.isabs(path) or "\\" in path or ".." in parts:
        return None
    for above in upwards(directory):
        found = _in_packages(files, os.path.join(above, _PACKAGES), parts)
        if found is not None:
            return _file(files, found)
        if files.exists(os.path.join(above, ".git")):
            return None
    return None


def _in_packages(files: Files, packages: str, parts: list[str]) -> str | None:
    package = os.path.join(packages, parts[0])
    found = _target(files, os.path.join(packages, *parts))
    if found is None and len(parts) > 1 and (export := _exports(files, package).get("/".join(parts[1:]))):
        found = _target(files, os.path.join(package, export))
    inside = package if files.is_dir(package) else packages
    return found if found is not None and _is_below(files, found, inside) else None


def _target(files: Files, path: str) -> str | None:
    """The file at ``path``: a directory stands for its `lib.harn`, if there is one."""
    if files.is_dir(path):
        entrance = os.path.join(path, _ENTRANCE)
        return entrance if files.is_file(entrance) else path
    return next((each for each in (path, _with_extension(path)) if files.is_file(each)), None)


def _exports(files: Files, package: str) -> dict[str, str]:
    """The `[exports]` of a package's manifest; one that can't be understood has none."""
    if not files.is_file(os.path.join(package, MANIFEST)):
        return {}
    from harnpy.formats.manifest import Manifest

    try:
        exports = Manifest(files, package).tables.get("exports")
    except (OSError, ValueError):
        return {}
    given = exports if isinstance(exports, dict) else {}
    return {name: target for name, target in given.items() if isinstance(target, str)}


def _is_below(files: Files, path: str, directory: str) -> bool:
    real, above = files.real_path(path), files.real_path(directory)
    return real == above or real.startswith(above + os.path.sep)


# What a module declares, read off its text alone. Spec: 06 §2.
#
# Plain data, so that the cache can keep it: a program that imports a module it has seen before parses
# neither.


class Surface:
    """The top level of one file.

    ``functions``: all `fn`s by name; ``public``: the `pub` ones among them. ``offered``: what else the
    static checks see from outside; ``hidden``: what they see only when it is listed. ``types``: the
    declarations of the types among ``offered``, as packed nodes. ``is_program``: the text could be
    parsed; nothing is known of what another one declares.
    """

    __slots__ = ("functions", "hidden", "is_program", "offered", "public", "requests", "types")

    def __init__(
        self,
        requests: tuple[Request, ...] = (),
        functions: dict[str, Params] | None = None,
        public: tuple[str, ...] = (),
        offered: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
        types: dict[str, Any] | None = None,
        is_program: bool = True,
    ) -> None:
        self.requests = requests
        self.functions = functions or {}
        self.public = public
        self.offered = offered
        self.hidden = hidden
        self.types = types or {}
        self.is_program = is_program

    @property
    def is_open(self) -> bool:
        """Return True if it exports all its functions, because none is `pub`."""
        return not self.public and not any(pub for _, _, pub, _ in self.requests)

    @property
    def listable(self) -> Sequence[str]:
        """What others may list in an import of it, without what isn't for them."""
        functions = self.functions if self.is_open else self.public
        return [name for name in (*functions, *self.offered) if not name.startswith("_")]


def surface_of(source: str) -> Surface:
    """The surface of a text; one that can't be parsed offers nothing."""
    kept = cache.load("surface", source)
    if type(kept) is tuple:
        return Surface(*kept)
    from harnpy.syntax.parser import parse_cached

    fields = _read(source, parse_cached)
    cache.store("surface", source, fields)
    return Surface(*fields)


def read_surface(source: str, parse: Callable[[str], ast.Program]) -> Surface:
    """The surface of a text that is read with ``parse``."""
    return Surface(*_read(source, parse))


def _read(source: str, parse: Callable[[str], ast.Program]) -> tuple[Any, ...]:
    """The fields of a `Surface`, in the order of its parameters."""
    from harnpy.syntax.diagnostic import SyntaxFault

    try:
        return _fields(parse(source))
    except SyntaxFault:
        return (), {}, (), (), (), {}, False


def _fields(program: ast.Program) -> tuple[Any, ...]:
    """The fields of a `Surface`, in the order of its parameters."""
    from harnpy.syntax import ast
    from harnpy.syntax.ast import pack

    functions = [node for node in program.items if isinstance(node, ast.FnDecl)]
    types = [
        node
        for node in program.items
        if isinstance(node, ast.TypeDecl | ast.InterfaceDecl)
        or (isinstance(node, ast.StructDecl | ast.EnumDecl) and node.pub)
    ]
    others = list(filter(None, map(_other_name, program.items)))
    return (
        tuple(requests_of(program.items)),
        {node.name: _params(node) for node in functions},
        tuple(node.name for node in functions if node.pub),
        tuple(name for name, is_offered in others if is_offered),
        tuple(name for name, is_offered in others if not is_offered),
        {node.name: pack(node) for node in types},
    )


def requests_of(items: Iterable[ast.Node]) -> Iterator[Request]:
    """The imports among the items of a file, then those in their blocks."""
    from harnpy.syntax import ast
    from harnpy.syntax.ast import walk

    inner = []
    for item in items:
        if isinstance(item, ast.Import):
            yield item.path, item.names, item.pub, item.start
        else:
            # A `pub import` in a block is one more statement of the block, and passes on nothing.
            found = (node for node in walk(item) if isinstance(node, ast.Import))
            inner += [(node.path, node.names, False, node.start) for node in found]
    yield from inner


def _params(node: ast.FnDecl) -> Params:
    return tuple((param.name, param.default is not None, param.rest) for param in node.params)


def _other_name(node: ast.Node) -> tuple[str, bool] | None:
    """The name that a statement declares, unless it is a function's, and whether it is offered unlisted."""
    from harnpy.syntax import ast

    match node:
        case ast.TypeDecl() | ast.InterfaceDecl():
            return node.name, True
        case ast.StructDecl() | ast.EnumDecl() | ast.Pipeline() | ast.ToolDecl() | ast.SkillDecl():
            return node.name, node.pub
        case ast.Let(target=ast.NamePattern(name=name)):
            return name, False
    return None


# The modules of one program: each read once, known by its canonical path. Spec: 06 §3-§6.
#
# A module is looked at before it is loaded: its surface shows the importing file, while that is compiled,
# which names it will have. `linker` loads it.


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

    def files(self) -> list[str]:
        """Return the files of all modules that somebody has looked at, except for harnpy's own."""
        return [module.name for module in self._known.values() if not module.place.bundled]

    def imports_of(self, vm: Vm, source: str, directory: str) -> Imports:
        """Return what the imports of a text in ``directory`` bring."""
        return self.brought(vm, self._surface(source).requests, directory)

    def brought(self, vm: Vm, requests: tuple[Request, ...], directory: str) -> Imports:
        """Return what the imports that a file of ``directory`` asks for bring."""
        brought = Imports()
        for path, names, _, start in requests:
            module = self.look(vm, path, directory)
            offer = brought.offers[start] = Offer(None if module is None else module.name, module is not None)
            if module is not None:
                offer.add(self.offer(vm, module, names))
        return brought

    def offer(self, vm: Vm, module: Module, names: Names) -> Offer:
        """Return what importing all of a module, or the listed names, brings."""
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
        place = find_module(vm.sources, path, directory)
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
        place = find_module(vm.sources, path, directory)
        if place is None and path.startswith(BUNDLED):
            raise RuntimeFault(unknown_module(path))
        file = expected_files(path, directory) if place is None else place.path
        try:
            # Reading what isn't there brings the system's own words for it.
            return self._module(vm, place or Place(file, file))
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
    """Return what a module offers of its own; ``every``: also what has to be listed."""
    offer = Offer(whole=surface.is_program)
    chosen = surface.functions if every or surface.is_open else surface.public
    offer.functions = {name: surface.functions[name] for name in chosen}
    offer.names = dict.fromkeys([*surface.offered, *(surface.hidden if every else ())])
    offer.types = surface.types
    return offer


def _text(vm: Vm, place: Place) -> str:
    # A bundled module is part of the interpreter: no world can hide it.
    files = RealFiles() if place.bundled else vm.sources
    return files.read_text(place.path)


def _unreadable(path: str, reason: str) -> RuntimeFault:
    return RuntimeFault(f"Import error: cannot read '{path}': {reason}")


# Doing the imports of one file while it runs, and running the modules that they ask for. Spec: 06 §4-§7.


class Linker:
    """The imports of one file while it runs: what they bind and, in a module, what it offers itself.

    ``bound`` holds the names that imports have bound in the file.
    """

    def __init__(self, vm: Vm, unit: Unit, bound: set[str], module: Module | None = None) -> None:
        self.vm = vm
        self.unit = unit
        self.bound = bound
        self.module = module
        self._passed_on: dict[str, Module] = {}

    def helpers(self) -> dict[str, Any]:
        """Return what generated code calls, by the names it uses."""
        return {
            "bound": self.bound,
            "bring": self.bring,
            "bring_again": self.bring_again,
            "publish": self.publish,
            "pass_on": self.pass_on,
        }

    def bring(self, path: str, names: Names, wanted: Wanted) -> list[Fn]:
        """Do ``import path``; return the functions ``wanted``. Raises RuntimeFault."""
        module, given = self._taken(path, names)
        for name in given:
            if name in self.bound:
                _collide(name, module)
        self.bound.update(given)
        self._passed_on[path] = module
        return self._in_order(given, wanted)

    def bring_again(self, path: str, names: Names, wanted: Wanted) -> list[Fn]:
        """The same for an import in a block, whose names go when the block does."""
        return self._in_order(self._taken(path, names)[1], wanted)

    def _taken(self, path: str, names: Names) -> tuple[Module, dict[str, Fn]]:
        modules = self.vm.state(Modules)
        module = modules.open(self.vm, path, self.unit.directory or self.vm.sources.cwd())
        spans = self.vm.spans
        if spans is None or not spans.on or module.stage != NEW:
            return module, self._given(module, names) if load_module(self.vm, module) else {}
        span = spans.begin("import", path)
        try:
            load_module(self.vm, module)
        finally:
            spans.end(span)
        return module, self._given(module, names)

    def _in_order(self, given: dict[str, Fn], wanted: Wanted) -> list[Fn]:
        """The functions ``wanted``; one that an import circle left out fails when it is called."""
        shell = self.vm.calls.shell
        return [given.get(name) or shell(name, *params) for name, params in wanted.items()]

    def _given(self, module: Module, names: Names) -> dict[str, Fn]:
        if names is None:
            return module.exports
        given = {}
        for name in names:
            function = module.functions.get(name) or module.exports.get(name)
            if function is None:
                raise RuntimeFault(f"Import error: '{name}' is not defined in {module.name}")
            if name in given:
                _collide(name, module)
            given[name] = function
        return given

    def publish(self, functions: dict[str, Fn], tools: dict[str, Value] | None = None) -> None:
        """Set the functions, tools and exports of the module that runs."""
        assert self.module
        self.module.tools = tools or {}
        surface = self.module.surface
        self.module.functions = functions
        exported = functions if surface.is_open else surface.public
        self.module.exports = {name: functions[name] for name in exported}

    def pass_on(self, path: str, names: Names) -> None:
        """Do the `pub` of a `pub import`. Raises RuntimeFault."""
        source = self._passed_on[path]
        assert self.module
        if not source.is_loaded:
            return
        for name in source.exports if names is None else names:
            if name not in source.exports:
                raise RuntimeFault(f"Re-export error: '{name}' is not exported by '{path}'")
            if name in self.module.functions:
                where = f"is defined here and also re-exported from '{path}'"
                raise RuntimeFault(f"Re-export collision: '{name}' {where}")
            self.module.exports[name] = source.exports[name]


def _collide(name: str, module: Module) -> Never:
    hint = f'Use selective imports to disambiguate: import {{ {name} }} from "..."'
    raise RuntimeFault(f"Import collision: '{name}' is already defined when importing {module.name}. {hint}")


# --- running a module -----------------------------------------------------------------------------------


def load_module(vm: Vm, module: Module) -> bool:
    """Run a module, unless it was; False while it is being loaded: the import is part of a circle."""
    if module.stage == NEW:
        module.stage = LOADING
        modules = vm.state(Modules)
        try:
            _run(vm, module, modules.brought(vm, module.surface.requests, module.place.directory))
        except BaseException:
            # A REPL goes on: its next import is to see the file as it is then.
            modules.forget(module)
            raise
        module.stage = LOADED
    return module.is_loaded


def _run(vm: Vm, module: Module, brought: Imports) -> None:
    unit = _compiled(vm, module, brought)
    unit.directory = None if module.place.bundled else module.place.directory
    unit.module = module.name
    traceable = vm.traceable
    # Functions of bundled modules are to programs what builtins are: no spans of their own (04 §25).
    vm.traceable = traceable and not module.place.bundled
    try:
        unit.main(vm, {}, Linker(vm, unit, set(), module), {})(1)
    finally:
        vm.traceable = vm.traceable or traceable


def _compiled(vm: Vm, module: Module, brought: Imports) -> Unit:
    try:
        unit: Unit = vm.units.module_unit(module.source, module.name, vm.builtins, brought)
        return unit
    except SourceFault as fault:
        where = f" in {module.name}" if module.place.bundled else ""
        raise RuntimeFault(f"Import {_stage(fault)} error{where}: {fault.message}") from None


def _stage(fault: SourceFault) -> str:
    """Return which stage of compiling a module failed, in the words of 06 §6."""
    if not isinstance(fault, CompileFault):
        return "lex" if isinstance(fault, LexFault) else "parse"
    return "init compile" if _in_initialiser(fault) else "compile"


def _in_initialiser(fault: CompileFault) -> bool:
    from harnpy.syntax import ast
    from harnpy.syntax.diagnostic import Lines
    from harnpy.syntax.parser import parse_cached

    lines = Lines(fault.source)
    lets = [item for item in parse_cached(fault.source).items if isinstance(item, ast.Let)]
    return any(lines.line(let.start) <= fault.line <= lines.line(let.end) for let in lets)


# A file as a library: its functions and tools are for the embedder to call. Spec: 06 §4, 09 §11.4.
#
# It is loaded like a module, so that its variables are shared by all calls, and checked like a program.


class Library:
    """The text of one file, before and after it is loaded. ``file`` is what messages call it."""

    def __init__(self, vm: Vm, source: str, file: str, path: str) -> None:
        """Raises SourceFault for what a run of the file would be refused for."""
        self._vm = vm
        self.module = Module(Place(file, path), source, surface_of(source))
        vm.file, vm.source_dir = file, self.module.place.directory
        vm.notice(source)
        self.imports = vm.imports_of(source, vm.source_dir) or Imports()
        vm.units.program_unit(source, file, None, vm.builtins, LANGUAGE, self.imports)
        self._unit = vm.units.module_unit(source, file, vm.builtins, self.imports)
        self._unit.directory = vm.source_dir

    def load(self) -> Module:
        """Do its imports, make its variables and functions. Raises VmError; to be called in a run."""
        linker = Linker(self._vm, self._unit, set(), self.module)
        self._unit.main(self._vm, {}, linker, {})(1)
        self.module.stage = LOADED
        return self.module

    def types(self) -> dict[str, ast.Node]:
        """The types that names stand for in the file, its own and imported ones."""
        from harnpy.vm.front_end import resolved_module

        file, table = self._unit.file, self._vm.builtins
        tree = resolved_module(self.module.source, file, table, self.imports)
        return dict(tree.resolution.aliases)
