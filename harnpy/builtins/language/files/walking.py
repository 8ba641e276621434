"""Looking around in directories. Spec: 04 §19."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.places import path_at_work
from harnpy.builtins.language.files.failures import thrown
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="files", guarded=True)


@builtin('list_dir(path: string = ".") -> list')
def list_dir(vm: Vm, path: str) -> list[Value]:
    """The names in a directory, sorted.

    Example:
        mkdir("box/inner")
        list_dir("box")  // ["inner"]
    """
    place = path_at_work(vm, path)
    with thrown(f"Failed to list directory {place}"):
        return [entry.name for entry in vm.world.files.entries(place)]


@builtin("walk_dir(path: string, opts?: dict) -> list")
def walk_dir(vm: Vm, path: str, opts: Value) -> list[Value]:
    """The directory and everything below it: `{path, is_dir, is_file, depth}`, sorted; `[]` if it is missing.

    `opts`: `max_depth`, `follow_symlinks` (false). What can't be listed is left out.

    Example:
        mkdir("tree/leaf")
        walk_dir("tree").map({ found -> found.depth })  // [0, 1]
    """
    from harnpy.world.disk.walking import walk

    if not path:
        raise Thrown("walk_dir: root path is required")
    given = opts if type(opts) is dict else {}
    depth = given.get("max_depth")
    follow = given.get("follow_symlinks") is True
    most = max(depth, 0) if type(depth) is int else None
    found = walk(vm.world.files, path_at_work(vm, path), most, follow)
    return [
        {"path": each.path, "is_dir": each.is_dir, "is_file": each.is_file, "depth": each.depth}
        for each in found
    ]


@builtin('glob(pattern: string, base: string | dict = ".") -> list')
def glob(vm: Vm, pattern: str, base: Value) -> list[Value]:
    """The paths below `base` (or `{base}`) that match, sorted.

    `*` and `?` match `/`, too; `**/` is any directories or none; `[ab]`, `[!ab]` and `{a,b}` are choices.

    Example:
        mkdir("src")
        write_file("src/a.md", "")
        write_file("src/b.txt", "")
        glob("**/*.md", "src").map({ path -> basename(path) })  // ["a.md"]
    """
    from harnpy.text.path_patterns import PatternError, path_matcher
    from harnpy.world.disk.walking import walk

    if not pattern:
        raise Thrown("glob: pattern is required")
    try:
        matches = path_matcher(pattern)
    except PatternError as error:
        raise Thrown(f"glob: {error}") from None
    if type(base) is dict:
        base = base.get("base")
    root = path_at_work(vm, "." if base is None else display(base))
    start = len(root.rstrip("/")) + 1
    return sorted(
        each.path for each in walk(vm.world.files, root) if each.depth and matches(each.path[start:])
    )
