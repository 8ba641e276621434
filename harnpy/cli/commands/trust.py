"""`harnpy trust`: deciding that what a project says of addresses, keys, stores and commands takes effect.

Spec: 09 §12.1.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.console import complain, one_line, say
from harnpy.formats.json import compact_json, parse_json
from harnpy.formats.manifest import Manifest, decision_name, decisions, manifest_of
from harnpy.project import project_root
from harnpy.world import World
from harnpy.world.files import plain_reason, private_files


@click.command("trust", short_help="Let a project's keys and commands take effect.")
@click.argument("directory", default=".", type=click.Path(file_okay=False))
@click.option("--list", "listing", is_flag=True, help="List the projects that you trust.")
@click.option("--revoke", is_flag=True, help="Stop trusting the project.")
def command(directory: str, listing: bool, revoke: bool) -> int:
    """Trust the project around DIRECTORY, the current one by default.

    What its harn.toml says about model providers, MCP servers, hooks, databases and places outside the
    project takes effect from then on, until that part changes. The command shows that part and asks
    nothing: read it first.
    """
    world = World()
    kept = decisions(world.environment.get)
    if kept is None:
        complain("error: the decision is kept in $XDG_CONFIG_HOME or ~/.config: set HOME")
        return FAILED
    if listing:
        return _list(world, kept)
    here = os.path.join(world.files.cwd(), directory)
    if not revoke and not world.files.is_dir(here):
        raise click.BadParameter("expected a directory that can be read", param_hint="DIRECTORY")
    # Links in a directory of a project are decided on by themselves.
    around = project_root(here, world.files) or here
    roots = list(dict.fromkeys(map(world.files.real_path, (around, here))))
    if revoke:
        decisions_on = {root: os.path.join(kept, decision_name(root)) for root in roots}
        trusted = [root for root in roots if world.files.exists(decisions_on[root])]
        for root in trusted:
            world.files.remove(decisions_on[root])
            say(one_line(f"{root} is not trusted any more"))
        if not trusted:
            say(one_line(f"{roots[0]} is not trusted"))
        return OK
    try:
        manifests = [manifest_of(world, root) for root in roots]
    except (OSError, ValueError) as error:
        complain(f"error: {one_line(os.path.join(roots[0], 'harn.toml'))}: {one_line(plain_reason(error))}")
        return FAILED
    return _trust(world, manifests, kept)


def _trust(world: World, manifests: list[Manifest], kept: str) -> int:
    saying = [manifest for manifest in manifests if manifest.parts]
    for manifest in saying:
        for path, value in manifest.parts.items():
            # Nothing hides, and no letter is taken for another one.
            line = f"{'.'.join(map(_key, path))} = {compact_json(value)}"
            say(line.encode("ascii", "backslashreplace").decode())
        private_files(world.files).replace_text(
            os.path.join(kept, decision_name(manifest.root)), manifest.decision()
        )
        say(one_line(f"trusted: {manifest.root}"))
    if not saying:
        say(one_line(f"{manifests[0].root} says nothing that needs trust"))
    return OK


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w./-]+", name) else compact_json(name)


def _list(world: World, kept: str) -> int:
    """List the projects that are trusted, and those that have changed since."""
    for name in world.files.list_dir(kept) if world.files.is_dir(kept) else ():
        try:
            text = Path(kept, name).read_text(encoding="utf-8")
            root = parse_json(text)["project"]
            same = Manifest(world.files, root).decision() == text
        except (OSError, ValueError, KeyError, TypeError):
            continue  # nothing of ours, or a project that is gone
        changed = "" if same else " (has changed)" if world.files.is_dir(root) else " (is gone)"
        say(one_line(f"{root}{changed}"))
    return OK
