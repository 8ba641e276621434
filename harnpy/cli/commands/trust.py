"""`harnpy trust`: deciding that what a project says of addresses, keys, stores and commands takes effect.

Spec: 09 §12.1.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.console import complain, one_line, say
from harnpy.formats.json import compact_json, parse_json
from harnpy.formats.manifest import Manifest, decision_name, decisions, manifest_of
from harnpy.project import project_root
from harnpy.world import World
from harnpy.world.files import plain_reason, private_files


@click.command("trust", short_help="Let what a project says of keys and commands count.")
@click.argument("directory", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--list", "listing", is_flag=True, help="List the projects that you trust.")
@click.option("--revoke", is_flag=True, help="Trust the project no longer.")
def command(directory: str, listing: bool, revoke: bool) -> int:
    """Trust the project around DIRECTORY, the current one by default.

    What its harn.toml says of model providers, MCP servers, hooks, databases and places outside the project
    takes effect from then on, until that part changes. Read it first: it is shown, and nothing is asked.
    """
    world = World()
    kept = decisions(world.environment.get)
    if kept is None:
        complain("error: the decision is kept in $XDG_CONFIG_HOME or ~/.config: set HOME")
        return FAILED
    if listing:
        return _list(world, kept)
    here = os.path.join(world.files.cwd(), directory)
    root = world.files.real_path(project_root(here, world.files) or here)
    decision = os.path.join(kept, decision_name(root))
    if revoke:
        was_trusted = world.files.exists(decision)
        if was_trusted:
            world.files.remove(decision)
        say(one_line(f"{root} is not trusted{' any more' if was_trusted else ''}"))
        return OK
    try:
        manifest = manifest_of(world, root)
    except (OSError, ValueError) as error:
        complain(f"error: {one_line(os.path.join(root, 'harn.toml'))}: {one_line(plain_reason(error))}")
        return FAILED
    return _trust(world, manifest, decision)


def _trust(world: World, manifest: Manifest, decision: str) -> int:
    for path, value in manifest.parts.items():
        say(one_line(f"{'.'.join(path)} = {compact_json(value)}"))
    if manifest.parts:
        private_files(world.files).replace_text(decision, manifest.decision())
        say(one_line(f"trusted: {manifest.root}"))
    else:
        say(one_line(f"{manifest.root} says nothing that needs trust"))
    return OK


def _list(world: World, kept: str) -> int:
    """List the projects that are trusted, and those that have changed since."""
    for name in world.files.list_dir(kept) if world.files.is_dir(kept) else ():
        try:
            text = Path(kept, name).read_text(encoding="utf-8")
            root = parse_json(text)["project"]
            same = Manifest(world.files, root).decision() == text
        except (OSError, ValueError, KeyError, TypeError):
            continue  # nothing of ours, or a project that is gone
        say(one_line(f"{root}{'' if same else ' (has changed)'}"))
    return OK
