"""The skills that a program finds in files before it runs: where they may be. Spec: 07 §13.1.

On the start-up path: what reads them is imported when there is something to read.
"""

from __future__ import annotations

import os

from harnpy.project import MANIFEST, project_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy import Vm


def bind_skills(vm: Vm, file: str | None, directories: Iterable[str] = ()) -> None:
    """Give the program in ``file`` its skills; what can't be used is a warning on stderr.

    ``directories`` come before all other places. Code without a file belongs to no project; what is read
    from stdin, ``-``, counts as a file that stands here.
    """
    here = vm.host.cwd()
    at = None if file is None else os.path.join(here, os.path.dirname(file))
    root = None if at is None else project_root(at) or at
    places = [
        (layer, directory)
        for layer, directory in _places(vm.host.env, here, root, directories)
        if layer == "cli" or os.path.isdir(directory)
    ]
    vm.found_skills = ()
    if places or (root and os.path.isfile(os.path.join(root, MANIFEST))):
        from harnpy.agent.skills.sources import discover

        def warn(message: str) -> None:
            vm.host.write_err(f"warning: skills: {message}\n")

        vm.found_skills = discover(vm.host, root, places, warn)


def _places(
    env: Callable[[str], str | None], here: str, root: str | None, directories: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Layers and their directories."""
    for directory in directories:
        yield "cli", os.path.normpath(os.path.join(here, directory))
    for directory in (env("HARN_SKILLS_PATH") or "").split(":"):
        if directory:
            yield "env", os.path.normpath(os.path.join(here, directory))
    if root:
        yield "project", os.path.join(root, ".harn/skills")
        yield "package", os.path.join(root, ".harn/packages")
    home = env("HOME")
    if home:
        yield "user", os.path.join(home, ".harn/skills")
    config = env("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else None)
    if config:
        yield "system", os.path.join(config, "harn/skills")
    yield "system", "/etc/harn/skills"
