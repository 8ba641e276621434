"""Runs to be branched: recorded in a directory of their own, with an outside that counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harnpy.embedding import Vm
from harnpy.tape import Branching, Changes, Recording, Tape, read_tape
from tests.durable.runs import Outside

#: 40 calls of models: of agents with tools and a stored session, of parallel tasks, of sub-agents, alone.
FORTY = """
let tools = tool_define(tool_registry(), "look", "Looks", {
  parameters: {name: "string"},
  handler: { args ->
    append_file("looks.txt", "${args.name}\\n")
    exec("tool", "look ${args.name}").stdout
  },
})
let usual = {provider: "p", model: "m", llm_retries: 0}
fn ask(text) { return llm_call(text, nil, usual).text }

let talk = agent_session_open("talk", {store: "sqlite:sessions.db"})
mkdir("notes")
for round in [1, 2, 3] {
  let options = {...usual, tool_format: "native", tools: tools, max_iterations: 3, session_id: talk}
  println("round ${round}: ${agent_loop("round ${round}", nil, options).text}")
  write_file("notes/${round}.txt", "round ${round} of ${random_int(1, 9)}")
}
println(agent_session_snapshot(talk).messages.count)

let found = parallel each [1, 22, 333, 4444, 55555, 666666] { item ->
  let first = ask("item ${item}")
  append_file("items.txt", "${item}\\n")
  if item == 333 { delete_file("notes/1.txt") }
  let second = ask("again ${item}")
  println("${first} ${second}")
  write_file("item-${item}.txt", second)
  second
}
println(found)

for task in ["one", "two", "three", "four"] {
  let done = sub_agent_run("sub ${task}", {...usual, max_iterations: 2})
  append_file("subs.txt", "${done.summary}\\n")
}

for n in 1 to 18 {
  let kept = if file_exists("kept.txt") { read_file("kept.txt") } else { "" }
  let said = ask("step ${n} ${kept.count}")
  write_file("kept.txt", kept + said + "\\n")
  if n % 5 == 0 { agent_session_inject(talk, {role: "user", content: said}) }
  println("step ${n}: ${said}")
}
println(list_dir("notes"))
println(read_file("looks.txt"))
"""


def record(
    directory: Path,
    source: str,
    name: str = "run.tape",
    *,
    outside: Outside | None = None,
    on_write: Callable[[list[str]], object] = lambda keys: None,
) -> tuple[Tape, str]:
    """Record a run of a program; return its tape and what it has printed.

    ``on_write`` is called with the keys of the steps that were just written.
    """
    outside = Outside() if outside is None else outside
    world = Recording(directory / name, outside)
    write = world.writer.write  # type: ignore[union-attr]

    def noted(steps: Any) -> None:
        write(steps)
        on_write([step.key for step in steps])

    world.writer.write = noted  # type: ignore[method-assign,union-attr]
    vm = Vm(world=world)
    outside.prepare(vm)
    vm.run_source(source, file="main.harn")
    return read_tape(directory / name), outside.output()


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the files of a run, but for tapes and stores."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and ".tape" not in path.name and "sessions.db" not in path.name
    }


def overlaid(world: Branching) -> dict[str, bytes]:
    """Return the same as a branch sees them."""
    names = [
        name
        for name in world.overlay.files_under(world.directory)
        if ".tape" not in name and "sessions.db" not in name
    ]
    return {name: world.overlay.read_bytes(f"{world.directory}/{name}") for name in sorted(names)}


class Branch:
    """A branch that was run: what it had printed, and which files it saw, when it went on live, and after."""

    def __init__(self, tape: Tape | Path, at: int, changes: Changes | None = None, **options: Any) -> None:
        self.outside = Outside()
        self.printed = ""
        self.files: dict[str, bytes] = {}
        with Branching(tape, at, changes, real=self.outside, **options) as world:
            self.world = world
            world.on_begin.append(self._watch)
            self.value = world.run(self.outside.prepare)
            self.written, self.deleted = world.written(), world.deleted()
            self.end = overlaid(world)
        self.path = world.path
        self.tape = read_tape(world.path)
        self.output = self.outside.output()

    def _watch(self, journal: Any, vm: Any) -> None:
        go_live = journal.follower.live

        def note() -> None:
            go_live()
            journal.flush()
            self.printed = "".join(self.outside.printed)
            self.files = overlaid(self.world)

        journal.follower.live = note
