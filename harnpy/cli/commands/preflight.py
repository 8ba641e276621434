"""What would fail in a run because a file is missing or two names collide. Spec: 06 §5-§8, 03 §14."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harnpy import Vm
from harnpy.project import MANIFEST, project_root
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Diagnostic
from harnpy.syntax.errors import SyntaxFault
from harnpy.syntax.parser import parse
from harnpy.syntax.span import Lines
from harnpy.text.templates import assets
from harnpy.text.toml.reader import parse_toml
from harnpy.vm.modules.paths import BUNDLED
from harnpy.vm.modules.program_modules import Module, Modules
from harnpy.vm.resolve.tree import walk
from harnpy.world.files import RealFiles

SEVERITIES = ("error", "warning", "off")

#: What a manifest may say for them.
_SPELLINGS = {"warn": "warning", "allow": "off", "silent": "off"}
_RENDERING = ("render", "render_prompt")
_ONE_OF_THEM = 'use selective imports to disambiguate: import {{ {} }} from "..."'
_RENAME = "rename one of the imported modules or avoid importing conflicting names"

#: The node, the code, the problem, and what to do about it.
Finding = tuple[ast.Node, str, str, str | None]
Imported = list[tuple[ast.Import, Module | None]]


def findings(
    vm: Vm, program: ast.Program, file: Path, source: str, severity: str | None
) -> Iterator[Diagnostic]:
    """The preflight of one file, with ``severity`` or else the severity in its project's manifest."""
    directory = str(file.absolute().parent)
    severity = severity or _manifest_severity(directory)
    if severity == "off":
        return
    lines = Lines(source)
    imports = [node for node in program.items if isinstance(node, ast.Import)]
    modules = [(node, vm.state(Modules).look(vm, node.path, directory)) for node in imports]
    found = [*_unresolved(modules), *_collisions(vm, modules), *_reexports(vm, program, file, modules)]
    for node, code, text, help_ in [*found, *_templates(vm, program, directory)]:
        span = lines.span(node.start, node.end)
        yield Diagnostic(severity, f"preflight: {text}", span, "preflight", help_, code=code)


def _manifest_severity(directory: str) -> str:
    root = project_root(directory, RealFiles())
    try:
        manifest = parse_toml(Path(root, MANIFEST).read_text(encoding="utf-8")) if root else {}
    except (OSError, ValueError):
        return "error"
    check = manifest.get("check", {})
    given = check.get("preflight_severity") if isinstance(check, dict) else None
    severity = _SPELLINGS.get(str(given), str(given))
    return severity if severity in SEVERITIES else "error"


def _unresolved(modules: Imported) -> Iterator[Finding]:
    """Files that aren't there; the checker knows the bundled modules (03 §16)."""
    for node, module in modules:
        if module is None and not node.path.startswith(BUNDLED):
            help_ = "verify the import path and packaged module layout"
            yield node, "unresolved-import", f"unresolved import '{node.path}'", help_
        elif module is not None and not module.surface.is_program:
            fault = f"the file of import '{node.path}' has a syntax error: {_syntax_error(module)}"
            yield node, "unresolved-import", fault, f"`harnpy check {module.name}` shows where"


def _syntax_error(module: Module) -> str:
    """What is wrong with the text of a module that can't be parsed."""
    try:
        parse(module.source)
    except SyntaxFault as fault:
        return fault.message
    return ""


def _collisions(vm: Vm, modules: Imported) -> Iterator[Finding]:
    """Names that two imports bring; the first one counts."""
    owners: dict[str, Module] = {}
    for node, module in modules:
        if module is None or node.path.startswith(BUNDLED):
            continue
        for name in vm.state(Modules).offer(vm, module, node.names).functions:
            if name in owners:
                help_ = _ONE_OF_THEM.format(name) if node.names is None else _RENAME
                where = f"is exported by both '{owners[name].name}' and '{node.path}'"
                yield node, "import-collision", f"import collision — '{name}' {where}", help_
            owners.setdefault(name, module)


def _reexports(vm: Vm, program: ast.Program, file: Path, modules: Imported) -> Iterator[Finding]:
    own = {node.name for node in program.items if isinstance(node, ast.FnDecl)}
    sources: dict[str, list[str]] = {name: [str(file)] for name in own}
    places: dict[str, ast.Import] = {}
    for node, module in modules:
        if node.pub and module is not None:
            for name in vm.state(Modules).offer(vm, module, node.names).functions:
                sources.setdefault(name, []).append(module.name)
                places[name] = node
    help_ = "remove or rename one of the conflicting `pub import` declarations"
    for name, node in places.items():
        if len(sources[name]) > 1:
            by = f"by multiple sources: {', '.join(sources[name])}"
            text = f"re-export conflict — '{name}' is re-exported (or locally defined) {by}"
            yield node, "reexport-conflict", text, help_


def _templates(vm: Vm, program: ast.Program, directory: str) -> Iterator[Finding]:
    """Missing templates with literal names; computed names are known only in a run."""
    for node in walk(program):
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
