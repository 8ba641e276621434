"""Preparing a program's run: hooks and MCP servers of its project, skills in files.

Spec: 07 §8.4, §13.1, §15.1.

On the start-up path: what reads them is imported when there is something to read.
"""

from __future__ import annotations

import os

from harnpy.project import (
    MANIFEST,
    PROGRAM_TABLES,
    STATE,
    ManifestError,
    linked_state,
    project_root,
    skill_places,
)
from harnpy.world import World
from harnpy.world.files import plain_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harnpy import Vm
    from harnpy.formats.manifest import Manifest

#: The tables of the project around the working directory that any program may use.
_AROUND = ("sessions", "event_log", STATE)

#: By table, what errors of reading it begin with.
_LEADS = {"mcp": "failed to read MCP servers", "hooks": "failed to install manifest hooks"}


def bind_project(vm: Vm, file: str | None, skill_dirs: Iterable[str] = ()) -> None:
    """Give the program in ``file`` its skills, and its project's hooks as soon as it starts.

    ``skill_dirs`` come before all other places of skills. Code without a file belongs to no project; what
    is read from stdin, ``-``, counts as a file in the working directory. A program doesn't start where its
    project, or the one around the working directory, has parts for it that nobody trusts.
    """
    vm.settings.found_skills = ()
    files = vm.unguarded.files
    here = files.cwd()
    at = None if file is None else os.path.normpath(os.path.join(here, os.path.dirname(file)))
    project = None if at is None else project_root(at, files)
    around = project_root(here, files) or here
    tables = _AROUND if file is not None else (*_AROUND, "llm")
    for base in (around, at if project is None else None):
        if base not in (None, project) and not _may_start(vm, base, tables):
            return
    if not bind_manifest(vm, project):
        return
    places = [
        (layer, directory)
        for layer, directory in skill_places(vm.unguarded.environment.get, here, project or at, skill_dirs)
        if layer == "cli" or os.path.isdir(directory)
    ]
    if places or project is not None:
        _bind_skills(vm, project or at, places)


def bind_manifest(vm: Vm, project: str | None) -> bool:
    """Whenever a program starts, declare the MCP servers of its project and install the hooks.

    Return False if none may start, because the manifest is wrong or nobody trusts what it says to programs.
    """
    return project is None or _may_start(vm, project, PROGRAM_TABLES, _bind)


def require_trust(files: Iterable[str | os.PathLike[str]]) -> None:
    """Raise `ManifestError` unless programs may start in the projects of all ``files``."""
    world = World()
    directories = {os.path.dirname(os.path.join(world.files.cwd(), file)) for file in files}
    for root in sorted({project_root(each, world.files) or each for each in directories}):
        try:
            manifest = _read_manifest(world, root)
        except ManifestError:
            continue  # whoever reads it says so
        refusal = None if manifest is None else manifest.refusal(*PROGRAM_TABLES)
        if refusal is not None:
            raise refusal


def _may_start(
    vm: Vm, base: str, tables: Iterable[str], bind: Callable[[Vm, Manifest], object] | None = None
) -> bool:
    """Bind what a manifest says; return False, and let no program start, if these tables keep it from it."""
    try:
        manifest = _read_manifest(vm.unguarded, base)
        refusal = None if manifest is None else manifest.refusal(*tables)
        if manifest is not None and bind is not None:
            if refusal is None:
                bind(vm, manifest)
            elif ("mcp",) in manifest.held:
                vm.set_global("mcp", {})  # the static checks know the name
    except ManifestError as error:
        refusal = error if bind is not None else None
    if refusal is None:
        return True

    def refuse(refusal: ManifestError = refusal) -> None:
        raise refusal

    vm.on_start.append(refuse)
    return False


def _read_manifest(world: World, project: str) -> Manifest | None:
    """Return a manifest, None for one that says nothing to programs. Raises `ManifestError`."""
    files, path = world.files, os.path.join(project, MANIFEST)
    try:
        text = files.read_text(path)
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{_LEADS['hooks']}: {plain_reason(error)}", path) from None
    if not any(word in text for word in (*PROGRAM_TABLES, "\\")) and not linked_state(files, project):
        return None
    from harnpy.formats.manifest import manifest_of

    try:
        return manifest_of(world, project)
    except ValueError as error:
        lead = next((lead for table, lead in _LEADS.items() if table in text), None)
        if lead is None:
            return None  # whoever reads the other tables says so
        raise ManifestError(f"{lead}: {error}", path) from None


def _bind(vm: Vm, manifest: Manifest) -> None:
    """Declare the servers and install the hooks of a manifest. Raises `ManifestError`."""
    if "mcp" in manifest.tables:
        from harnpy.builtins.net.mcp import bind_servers

        bind_servers(vm, manifest)
    if "hooks" in manifest.tables:
        from harnpy.builtins.agents.manifest_hooks import install

        vm.on_start.append(lambda: install(vm, manifest))


def _bind_skills(vm: Vm, root: str | None, places: list[tuple[str, str]]) -> None:
    """Find skills; unusable ones are warnings on stderr."""
    from harnpy.agent.skills import discover_skills

    def warn(message: str) -> None:
        vm.unguarded.streams.write_err(f"warning: skills: {message}\n")

    vm.settings.found_skills = discover_skills(vm.unguarded, root, places, warn)
