"""What would fail in a run because a file is missing or two names collide. Spec: 06 §5-§8, 03 §14."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harnpy.check.findings import Finding
from harnpy.formats.manifest import Manifest
from harnpy.formats.templates import assets
from harnpy.project import project_root
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.vm.modules import BUNDLED, Module, Modules
from harnpy.world.files import RealFiles

if TYPE_CHECKING:
    from harnpy.vm.vm import Vm

SEVERITIES = ("error", "warning", "off")

#: What a manifest may say for them.
_SPELLINGS = {"warn": "warning", "allow": "off", "silent": "off"}
_RENDERING = ("render", "render_prompt")
_ONE_OF_THEM = 'use selective imports to disambiguate: import {{ {} }} from "..."'
_RENAME = "rename one of the imported modules or avoid importing conflicting names"

#: The node, the code, the problem, and what to do about it.
_Problem = tuple[ast.Node, str, str, str | None]
_Imported = list[tuple[ast.Import, Module | None]]


def preflight_findings(
    vm: Vm, modules: Modules, program: ast.Program, file: str, directory: str, severity: str | None = None
) -> Iterator[Finding]:
    """Yield the preflight of one file, with ``severity`` or else the severity in its project's manifest.

    ``modules`` are those that its imports, which count from ``directory``, lead to.
    """
    severity = severity or _manifest_severity(directory)
    if severity == "off":
        return
    imports = [
        (node, modules.look(vm, node.path, directory))
        for node in program.items
        if isinstance(node, ast.Import)
    ]
    found = [*_unresolved(imports), *_collisions(vm, modules, imports)]
    found += _reexports(vm, modules, program, file, imports)
    for node, code, text, help_ in [*found, *_templates(vm, program, directory)]:
        message = f"preflight: {text}"
        yield Finding(code, severity, message, node.start, node.end, help=help_, label="preflight")


def _manifest_severity(directory: str) -> str:
    root = project_root(directory, RealFiles())
    try:
        tables = Manifest(RealFiles(), root).tables if root else {}
    except (OSError, ValueError):
        return "error"
    check = tables.get("check", {})
    given = check.get("preflight_severity") if isinstance(check, dict) else None
    severity = _SPELLINGS.get(str(given), str(given))
    return severity if severity in SEVERITIES else "error"


def _unresolved(imports: _Imported) -> Iterator[_Problem]:
    """Files that aren't there; the checker knows the bundled modules (03 §16)."""
    for node, module in imports:
        if module is None and not node.path.startswith(BUNDLED):
            help_ = "verify the import path and packaged module layout"
            yield node, "unresolved-import", f"unresolved import '{node.path}'", help_
        elif module is not None and not module.surface.is_program:
            fault = f"the file of import '{node.path}' has a syntax error: {_syntax_error(module)}"
            yield node, "unresolved-import", fault, f"`harnpy check {module.name}` shows where"


def _syntax_error(module: Module) -> str:
    """Return the error in the text of a module that can't be parsed."""
    try:
        parse(module.source)
    except SyntaxFault as fault:
        return fault.message
    return ""


def _collisions(vm: Vm, modules: Modules, imports: _Imported) -> Iterator[_Problem]:
    """Names that two imports bring; the first one counts."""
    owners: dict[str, Module] = {}
    for node, module in imports:
        if module is None or node.path.startswith(BUNDLED):
            continue
        for name in modules.offer(vm, module, node.names).functions:
            if name in owners:
                help_ = _ONE_OF_THEM.format(name) if node.names is None else _RENAME
                where = f"is exported by both '{owners[name].name}' and '{node.path}'"
                yield node, "import-collision", f"import collision — '{name}' {where}", help_
            owners.setdefault(name, module)


def _reexports(
    vm: Vm, modules: Modules, program: ast.Program, file: str, imports: _Imported
) -> Iterator[_Problem]:
    own = {node.name for node in program.items if isinstance(node, ast.FnDecl)}
    sources: dict[str, list[str]] = {name: [file] for name in own}
    places: dict[str, ast.Import] = {}
    for node, module in imports:
        if node.pub and module is not None:
            for name in modules.offer(vm, module, node.names).functions:
                sources.setdefault(name, []).append(module.name)
                places[name] = node
    help_ = "remove or rename one of the conflicting `pub import` declarations"
    for name, node in places.items():
        if len(sources[name]) > 1:
            by = f"by multiple sources: {', '.join(sources[name])}"
            text = f"re-export conflict — '{name}' is re-exported (or locally defined) {by}"
            yield node, "reexport-conflict", text, help_


def _templates(vm: Vm, program: ast.Program, directory: str) -> Iterator[_Problem]:
    """Missing templates with literal names; computed names are known only in a run."""
    for node in ast.walk(program):
        path = _template_path(node)
        if path is None:
            continue
        try:
            target = assets.resolve(vm.unguarded.files, path.value, directory)
        except assets.AssetError as error:
            yield path, "missing-template", str(error), None
            continue
        if isinstance(node, ast.Call) and node.name in _RENDERING and not vm.unguarded.files.is_file(target):
            text = f"{node.name} target '{path.value}' does not exist at {target}"
            yield path, "missing-template", text, None


def _template_path(node: ast.Node) -> ast.Str | None:
    """The literal path of a call that renders a file."""
    match node:
        case ast.Call(name="render" | "render_prompt", args=(ast.Str() as path, *_)):
            return path
        case ast.Call(name="host_call", args=(ast.Str(value="template.render"), ast.Dict() as given, *_)):
            return _literal_entry(given, "path")
    return None


def _literal_entry(given: ast.Dict, key: str) -> ast.Str | None:
    for entry in given.entries:
        match entry:
            case ast.DictEntry(key=ast.Str(value=name), value=ast.Str() as value) if name == key:
                return value
    return None
