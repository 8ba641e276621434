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
    from collections.abc import Iterable

    from harnpy import Vm
    from harnpy.formats.manifest import Manifest

#: The tables of the project around the working directory that any program may use.
_AROUND = ("sessions", "event_log", STATE)

#: By table, what errors of reading it begin with.
_LEADS = {"mcp": "failed to read MCP servers", "hooks": "failed to install manifest hooks"}


def bind_project(vm: Vm, file: str | None, skill_dirs: Iterable[str] = ()) -> None:
    """Give the program in ``file`` its skills, and its project's hooks as soon as it starts.

    ``skill_dirs`` come before all other places of skills. Code without a file belongs to no project; what
    is read from stdin, ``-``, counts as a file in the working directory. Raises `ManifestError` where the
    project, or the one around the working directory, has parts for programs that nobody trusts.
    """
    vm.settings.found_skills = ()
    files = vm.unguarded.files
    here = files.cwd()
    at = None if file is None else os.path.normpath(os.path.join(here, os.path.dirname(file)))
    project = None if at is None else project_root(at, files)
    around = project_root(here, files) or here
    for base in (around, here, at if project is None else None):
        if base not in (None, project):
            _require_trust(vm.unguarded, base, _AROUND)
    if project is not None:
        _require_trust(vm.unguarded, project, PROGRAM_TABLES)
        bind_manifest(vm, project)
    places = [
        (layer, directory)
        for layer, directory in skill_places(vm.unguarded.environment.get, here, project or at, skill_dirs)
        if layer == "cli" or files.is_dir(directory)
    ]
    if places or project is not None:
        _bind_skills(vm, project or at, places)


def bind_manifest(vm: Vm, project: str) -> None:
    """Whenever a program starts, declare the MCP servers of its project and install the hooks.

    None starts where the manifest is wrong, or nobody trusts what it says to programs.
    """
    try:
        manifest = _read_manifest(vm.unguarded, project)
        refusal = None if manifest is None else manifest.refusal(*PROGRAM_TABLES)
        if manifest is not None and refusal is None:
            _bind(vm, manifest)
        elif manifest is not None and ("mcp",) in manifest.held:
            vm.set_global("mcp", {})  # the static checks know the name
    except ManifestError as error:
        refusal = error
    if refusal is None:
        return

    def refuse(refusal: ManifestError = refusal) -> None:
        raise refusal

    vm.on_start.append(refuse)


def require_trust(files: Iterable[str | os.PathLike[str]]) -> None:
    """Raise `ManifestError` unless programs may start in the projects of all ``files``."""
    world = World()
    directories = {os.path.dirname(os.path.join(world.files.cwd(), file)) for file in files}
    for root in sorted({project_root(each, world.files) or each for each in directories}):
        _require_trust(world, root, PROGRAM_TABLES)


def _require_trust(world: World, base: str, tables: Iterable[str]) -> None:
    """Raise `ManifestError` if nobody trusts what the project in ``base`` says in these tables."""
    try:
        manifest = _read_manifest(world, base)
    except ManifestError:
        return  # whoever reads it says so
    refusal = None if manifest is None else manifest.refusal(*tables)
    if refusal is not None:
        raise refusal


def _read_manifest(world: World, project: str) -> Manifest | None:
    """Return a manifest, None for one that says nothing to programs. Raises `ManifestError`."""
    files, path = world.files, os.path.join(project, MANIFEST)
    try:
        text = files.read_text(path) if files.is_file(path) else ""
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
