"""Preparing a program's run: hooks and MCP servers of its project, skills in files.

Spec: 07 §8.4, §13.1, §15.1.

On the start-up path: what reads them is imported when there is something to read.
"""

from __future__ import annotations

import os

from harnpy.project import MANIFEST, ManifestError, project_root, skill_places
from harnpy.world.files import plain_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy import Vm


def bind_project(vm: Vm, file: str | None, skill_dirs: Iterable[str] = ()) -> None:
    """Give the program in ``file`` its skills, and its project's hooks as soon as it starts.

    ``skill_dirs`` come before all other places of skills. Code without a file belongs to no project; what
    is read from stdin, ``-``, counts as a file in the working directory.
    """
    here = vm.unguarded.files.cwd()
    at = None if file is None else os.path.normpath(os.path.join(here, os.path.dirname(file)))
    project = None if at is None else project_root(at, vm.unguarded.files)
    bind_manifest(vm, project)
    places = [
        (layer, directory)
        for layer, directory in skill_places(vm.unguarded.environment.get, here, project or at, skill_dirs)
        if layer == "cli" or os.path.isdir(directory)
    ]
    vm.settings.found_skills = ()
    if places or project is not None:
        _bind_skills(vm, project or at, places)


def bind_manifest(vm: Vm, project: str | None) -> None:
    """Whenever a program starts, declare the MCP servers of its project and install the hooks."""
    if project is None:
        return
    try:
        _bind_servers(vm, os.path.join(project, MANIFEST))
    except ManifestError as error:
        refusal = error  # told like what is wrong with hooks: when a program starts

        def refuse() -> None:
            raise refusal

        vm.on_start.append(refuse)
    vm.on_start.append(lambda: _install_hooks(vm, project))


def _bind_servers(vm: Vm, path: str) -> None:
    """Declare the servers of a manifest. Raises `ManifestError`, but not for a manifest without servers."""
    try:
        text = vm.unguarded.files.read_text(path)
    except (OSError, UnicodeDecodeError):  # the hooks' reader says so
        return
    if "mcp" in text:
        from harnpy.builtins.net.mcp import bind_servers

        bind_servers(vm, path, text)


def _bind_skills(vm: Vm, root: str | None, places: list[tuple[str, str]]) -> None:
    """Find skills; unusable ones are warnings on stderr."""
    from harnpy.agent.skills import discover_skills

    def warn(message: str) -> None:
        vm.unguarded.streams.write_err(f"warning: skills: {message}\n")

    vm.settings.found_skills = discover_skills(vm.unguarded.files, root, places, warn)


def _install_hooks(vm: Vm, project: str) -> None:
    """Install the hooks of a manifest. Raises `ManifestError`, but not for a manifest without hooks."""
    path = os.path.join(project, MANIFEST)
    try:
        text = vm.unguarded.files.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = plain_reason(error)
        raise ManifestError(f"failed to install manifest hooks: {reason}", path) from None
    if "hooks" in text:
        from harnpy.builtins.agents.manifest_hooks import install

        install(vm, path, text)
