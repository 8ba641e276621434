"""`harnpy check`: what is wrong with programs, without running them; `harnpy explain`.

Spec: 03 §1, §14, 06 §5-8, 09 §4.1, §4.4.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click

from harnpy import Vm
from harnpy.check.allow import silenced
from harnpy.check.explanations import Explanation, explanations, families, page
from harnpy.check.lint.rules import lint
from harnpy.check.lint.settings import Settings
from harnpy.checking import Checker
from harnpy.cli import FAILED, OK
from harnpy.cli.command_options import trust_option, unbuilt_options
from harnpy.cli.console import complain, say_folded
from harnpy.cli.project_setup import bind_manifest
from harnpy.cli.reports import Report, report, report_options
from harnpy.cli.source_files import LintSettings, Manifests, consumed_names, nearest_manifest, program_files
from harnpy.formats.manifest import Manifest
from harnpy.formats.suggestions import nearest_at_run_time
from harnpy.formats.templates import assets
from harnpy.project import project_root
from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.syntax.diagnostic import Diagnostic, Lines, SyntaxFault
from harnpy.syntax.parser import parse, parse_cached
from harnpy.vm.modules import BUNDLED, Module, Modules
from harnpy.world.files import RealFiles

# What would fail in a run because a file is missing or two names collide. Spec: 06 §5-§8, 03 §14.


SEVERITIES = ("error", "warning", "off")

#: What a manifest may say for them.
_SPELLINGS = {"warn": "warning", "allow": "off", "silent": "off"}
_RENDERING = ("render", "render_prompt")
_ONE_OF_THEM = 'use selective imports to disambiguate: import {{ {} }} from "..."'
_RENAME = "rename one of the imported modules or avoid importing conflicting names"

#: The node, the code, the problem, and what to do about it.
Finding = tuple[ast.Node, str, str, str | None]
Imported = list[tuple[ast.Import, Module | None]]


def preflight_findings(
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
        tables = Manifest(RealFiles(), root).tables if root else {}
    except (OSError, ValueError):
        return "error"
    check = tables.get("check", {})
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
    """Return the error in the text of a module that can't be parsed."""
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


_NO_TARGET = "`harnpy check` requires at least one target path, or `--workspace` with `[workspace].pipelines`"


@click.command("check", short_help="Find the errors of programs without running them.")
@click.argument("targets", nargs=-1, type=click.Path(path_type=Path), metavar="TARGET...")
@click.option("--workspace", is_flag=True, help="Also check the [workspace] pipelines of harn.toml.")
@click.option("--strict-types", is_flag=True, help="Warn when unvalidated values from outside are read.")
@click.option(
    "--preflight",
    "severity",
    type=click.Choice(SEVERITIES),
    help="The severity of imports and templates that don't exist.",
)
@trust_option
@report_options
@unbuilt_options("--invariants", "--provider-matrix")
@unbuilt_options("--host-capabilities", "--bundle-root", takes_value=True)
@click.pass_context
def command(
    context: click.Context,
    targets: tuple[Path, ...],
    workspace: bool,
    strict_types: bool,
    severity: str | None,
    form: str | None,
) -> int:
    """Find the errors of programs without running them.

    Checks names, types, options of builtins, workflow graphs and tools; then reports the findings of
    `harnpy lint`, and files that a run would miss. A TARGET is a file, or a directory with .harn files
    below it. `harnpy explain CODE` explains a finding, and `// harnpy: allow CODE` at the end of a
    line silences it there.
    """
    if not targets and not workspace:
        raise click.UsageError(_NO_TARGET, context)
    try:
        files = program_files([*targets, *(_workspace(targets) if workspace else ())])
    except _NoWorkspace as error:
        complain(str(error))
        return FAILED
    if not files:
        complain("no .harn files found under the given target(s)")
        return FAILED
    told = report(form)
    status = _Checking(strict_types, severity, told).run(files)
    told.end()
    return status


class _NoWorkspace(Exception):
    """There are no `[workspace]` pipelines; the message says why."""


def _workspace(targets: Sequence[Path]) -> Iterator[Path]:
    """The pipelines of the manifest that is nearest to the first target. Raises _NoWorkspace."""
    start = str(targets[0]) if targets else "."
    manifest = nearest_manifest(start)
    if manifest is None:
        raise _NoWorkspace("--workspace could not find a harn.toml walking up from the target(s)")
    paths = Manifests().table("workspace", start, required=True).get("pipelines")
    if not isinstance(paths, list) or not paths:
        raise _NoWorkspace("--workspace requires `[workspace].pipelines` in the nearest harn.toml")
    yield from (Path(manifest).parent / str(path) for path in paths)


class _Checking:
    """One run of the command."""

    def __init__(self, strict_types: bool, severity: str | None, told: Report) -> None:
        self._strict_types = strict_types
        self._severity = severity
        self._told = told
        self._lint_settings = LintSettings()
        self._manifests = Manifests()
        self._vms: dict[str | None, Vm] = {}
        self._checkers: dict[tuple[Vm, bool], Checker] = {}

    def run(self, files: Sequence[Path]) -> int:
        """Check the files; return the exit status. A text that isn't Harn ends the command."""
        status = OK
        sources = {}
        for file in files:
            try:
                sources[file] = file.read_text(encoding="utf-8", errors="replace")
            except OSError as error:
                self._told.fail(error)
                status = FAILED
        consumed = consumed_names(Vm(), sources)
        for file, source in sources.items():
            try:
                found = self._found(file, source, consumed.get(file.resolve(), ()))
            except SyntaxFault as fault:
                self._told.fail(fault)
                return FAILED
            self._told.add(str(file), source, found)
            if not found:
                self._told.say(f"{file}: ok")
            if any(each.severity == "error" for each in found) or (
                found and self._lint_settings.strict(file)
            ):
                status = FAILED
        return status

    def _found(self, file: Path, source: str, consumed: Collection[str]) -> list[Diagnostic]:
        """Everything to say of a file. Raises SyntaxFault."""
        program = parse_cached(source, str(file))
        found = self._checked(file, source)
        # Where the checker has said something, the linter needn't, unless that isn't all.
        told = {each.span.start: each.code for each in found if each.span is not None}
        advice = self._advised(file, source, program, consumed)
        return found + [each for each in advice if not each.span or _adds(each, told.get(each.span.start))]

    def _vm(self, file: Path) -> Vm:
        """The Vm of a file's project: the servers of its manifest are globals of its programs."""
        root = project_root(str(file.absolute().parent), RealFiles())
        if root not in self._vms:
            self._vms[root] = Vm()
            if root is not None:
                bind_manifest(self._vms[root], root)
        return self._vms[root]

    def _checked(self, file: Path, source: str) -> list[Diagnostic]:
        """Return the findings of the type checker."""
        table = self._manifests.table("check", str(file))
        strict = self._strict_types or table.get("strict_types") is True
        vm = self._vm(file)
        checker = self._checkers.setdefault((vm, strict), Checker(strict=strict, disk=True, vm=vm))
        return checker.check({str(file): source})[str(file)]

    def _advised(
        self, file: Path, source: str, program: ast.Program, consumed: Collection[str]
    ) -> Iterator[Diagnostic]:
        """Return the findings of lint and preflight."""
        vm, directory = self._vm(file), str(file.absolute().parent)
        imports = vm.imports_of(source, directory)
        disabled = self._lint_settings.of(file).disabled
        findings = lint(
            source,
            program,
            str(file),
            vm.builtins.knowledge(),
            imports,
            Settings(disabled=disabled),
            consumed,
        )
        lines = Lines(source)
        yield from (finding.diagnostic(lines) for finding in silenced(source, findings))
        yield from preflight_findings(vm, program, file, source, self._severity)


def _adds(advice: Diagnostic, told: str | None) -> bool:
    """Return True if advice of the linter adds to the finding ``told`` at its place."""
    return told is None or (told, advice.code) == ("immutable-assignment", "lost-assignment")


# `harnpy explain`: what the code of a diagnostic means. Spec: 09 §4.4.


@click.command("explain", short_help="Explain the code of a diagnostic, or list all codes.")
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of CODE's explanation, or of all.")
@click.option("--markdown", is_flag=True, help="Print the page of all codes, docs/diagnostics.md.")
@unbuilt_options("--invariant", takes_value=True)
def explain(code: str | None, as_json: bool, markdown: bool) -> None:
    """Explain CODE, the word beside the carets of a diagnostic, with a wrong and a right program.

    Without CODE, list all codes by family.
    """
    found = None if code is None else _find(code)
    if as_json:
        shown = explanations().values() if found is None else [found]
        click.echo(json.dumps([_as_dict(each) for each in shown], indent=1, ensure_ascii=False))
    elif markdown:
        click.echo(page(), nl=False)
    else:
        say_folded("\n".join(_list() if found is None else _text(found)))


def _find(code: str) -> Explanation:
    """The explanation of ``code``, which may be written as in a label: ``lint[CODE]``."""
    name = code.removeprefix("lint[").removesuffix("]")
    found = explanations().get(name)
    if found is None:
        near = nearest_at_run_time(name, explanations())
        hint = f" (did you mean `{near}`?)" if near else "; `harnpy explain` lists all"
        raise click.ClickException(f"no diagnostic has the code `{name}`{hint}")
    return found


def _as_dict(found: Explanation) -> dict[str, str]:
    return {name: getattr(found, name) for name in ("code", "family", "what", "why", "wrong", "right")}


def _text(found: Explanation) -> Iterator[str]:
    yield f"{found.code}  [{found.family}]"
    yield from ("", found.what, "", found.why)
    for title, program in ("Wrong:", found.wrong), ("Right:", found.right):
        yield from ("", title, "")
        yield from (f"  {line}".rstrip() for line in program.splitlines())


def _list() -> Iterator[str]:
    for family in families():
        width = max((len(each.code) for each in family.explanations), default=0)
        yield f"{family.name}:"
        yield from (f"  {each.code:{width}}  {each.summary}" for each in family.explanations)
        yield ""
