"""What does a stage of a workflow cost, beside the model, and does it cost more in a larger workflow?

    python bench/workflows.py [--rounds N] [--stages N] [--check]

Stages one after the other, each a call of a model that replies at once and is shown the artifact of the
stage before: 20, 200 and 1,000 of them; and 200 in one map, 20 at a time. The run record goes to a file in
memory (`/dev/shm`), or to a stream of a harnpy store on SQLite, an append a stage. LangGraph does the same
with nodes of a graph, `Send` and an `InMemorySaver`, or a `SqliteSaver`. On both sides graphs, stores and
savers are made before, all that is loaded late was loaded by a first run, and the processor's time counts,
so that other programs hardly do: use `chrt -f 1 taskset -c 1` on a busy machine. A row is the median of the
rounds; sides and sizes take turns, in one process, and ratios are medians of the rounds' own. Then a stage
among 1,000 beside one among 100, the memory of a run of 1,000 stages, and the same map with a model that
takes 50 ms, against the time that its calls alone take.
"""

from __future__ import annotations

import asyncio
import gc
import operator
import os
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, time_ns
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from msgspec import json
from options import parser

from harnpy import Vm
from harnpy.storage import Row, Stream, open_store
from harnpy.world import World
from harnpy.world.files import RealFiles

FEW, WIDTH = 20, 20
LATENCY = 0.05
#: A map with a slow model against its calls alone.
OVERHEAD = 1.5
#: A stage among 200 against one among 20, and one among 1,000 against one among 100.
GROWTH, LONG_GROWTH = 1.5, 1.1
#: A long workflow has so many times the stages of a large one.
LONGER = 5
#: A stage against LangGraph's: its record in memory, and on SQLite.
IN_MEMORY, ON_SQLITE = 0.5, 0.3
#: MB that a run of 1,000 stages holds.
HELD = 40
ANSWER = "Fine, thank you."
SOURCE = """
fn models_say(provider) {
  if provider == "mock" {
    llm_mock({match: "*", text: "Fine, thank you."})
  }
}

fn stage(provider) {
  return {
    model_policy: {provider: provider, model: "m"},
    context_policy: {max_artifacts: 1, prefer_recent: true},
  }
}

fn chain(count, path, provider) {
  models_say(provider)
  var nodes = {}
  var edges = []
  for i in range(count) {
    nodes = nodes + {["s${i}"]: stage(provider)}
    if i > 0 {
      edges = edges.push({from: "s${i - 1}", to: "s${i}"})
    }
  }
  let graph = workflow_graph({entry: "s0", nodes: nodes, edges: edges})
  return { -> len(workflow_execute("Go on", graph, [], {persist_path: path}).run.stages) }
}

fn fan(count, path, provider) {
  models_say(provider)
  let items = range(count).iter().map({ i -> "item ${i}" }).to_list()
  let policy = {items: items, max_concurrent: 20, output_kind: "made"}
  let each = stage(provider) + {kind: "map", map_policy: policy}
  let graph = workflow_graph({entry: "each", nodes: {each: each}})
  return { -> len(workflow_execute("Go on", graph, [], {persist_path: path}).artifacts) }
}

pipeline main(task) {
  {chain: chain, fan: fan}
}
"""


#: Returns the whole result of the chain.
WHOLE = SOURCE.replace("len(workflow_execute", "(workflow_execute").replace(".run.stages) }", ") }")


def seconds(run: Callable[[], Any], expected: int, clock: Callable[[], float] = process_time) -> float:
    gc.collect()
    begin = clock()
    made = run()
    taken = clock() - begin
    if made != expected:
        raise AssertionError(f"{made} of {expected} were made")
    return taken


class Harnpy:
    """`workflow_execute`, its graph made before."""

    name = "harnpy"

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def measure(self, shape: str, count: int, world: World | None = None) -> float:
        return seconds(self._run(shape, count, "mock", world), count)

    def slow(self, shape: str, count: int) -> float:
        """Return the seconds by the clock on the wall, with a model that takes its time."""
        return seconds(self._run(shape, count, "slow", None), count, perf_counter)

    def on_sqlite(self, shape: str, count: int) -> float:
        """The record in a stream of a store, an append a stage."""
        place = os.path.join(self._directory, f"runs{uuid4()}.db")
        with closing(open_store(f"sqlite:{place}")) as store:
            world = World()
            world.files = InStream(store.stream("run", "bench", Plain()))
            return self.measure(shape, count, world=world)

    def held(self, shape: str, count: int) -> float:
        """MB that a run and its record hold once it has ended."""
        run = self._run(shape, count, "mock", None, whole=True)
        gc.collect()
        tracemalloc.start()
        result = run()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        assert len(result["run"]["stages"]) == count
        return held

    def _run(
        self, shape: str, count: int, provider: str, world: World | None, whole: bool = False
    ) -> Callable[[], Any]:
        vm = Vm() if world is None else Vm(world)
        vm.provide("slow", Slow())
        functions = vm.run_source(WHOLE if whole else SOURCE)
        run = vm.call(functions[shape], count, os.path.join(self._directory, "run.json"), provider)
        return lambda: vm.call(run)


class Plain:
    """Records that are rows."""

    def encode(self, records: Sequence[Row]) -> list[Row]:
        return list(records)

    def decode(self, rows: Sequence[Row]) -> list[Row]:
        return list(rows)

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [None for _ in rows]


class InStream(RealFiles):
    """Files of which the record of a run is a stream: its head, a row for each stage, its end."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream
        self._sizes: dict[str, int] = {}

    def _add(self, path: str, text: str) -> None:
        version = self._stream.version
        row = Row(version + 1, "run_line", time_ns() // 1000, json.encode(text).decode())
        self._stream.append([row], version)
        self._sizes[path] = self._sizes.get(path, 0) + len(text.encode())

    def replace_text(self, path: str, text: str, durable: bool = True, mark: str = ".partial") -> None:
        self._sizes.pop(path, None)
        self._add(path, text)

    def write_bytes(self, path: str, data: bytes, append: bool = False, durable: bool = False) -> None:
        self._add(path, data.decode())

    def status(self, path: str) -> Any:
        if path not in self._sizes:
            return super().status(path)
        return SimpleNamespace(st_ino=1, st_size=self._sizes[path])


class Slow:
    """A model that takes its time."""

    async def complete(self, request: Any) -> Any:
        from harnpy.llm.reply import Reply

        await asyncio.sleep(LATENCY)
        return Reply(ANSWER, request.model, "slow", request.model, 10, 5)


class LangGraph:
    """A `StateGraph` with an `InMemorySaver`."""

    name = "LangGraph"

    def __init__(self, directory: str = "") -> None:
        self._directory = directory

    def on_sqlite(self, shape: str, count: int) -> float:
        """The same with a `SqliteSaver`; its nodes are plain functions, as it has no other."""
        from langgraph.checkpoint.sqlite import SqliteSaver

        place = os.path.join(self._directory, f"graph{uuid4()}.db")
        config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": count + 5}
        with SqliteSaver.from_conn_string(place) as saver:
            graph = self._chain(count, saver, _answer_at_once)
            return seconds(lambda: len(graph.invoke({"texts": []}, config)["texts"]), count)

    def measure(self, shape: str, count: int) -> float:
        graph = self._chain(count) if shape == "chain" else self._fan(count)
        config: Any = {
            "configurable": {"thread_id": "t"},
            "recursion_limit": count + 5,
            "max_concurrency": WIDTH,
        }
        made = lambda: len(asyncio.run(graph.ainvoke({"texts": []}, config))["texts"])  # noqa: E731
        return seconds(made, count)

    def _chain(self, count: int, saver: Any = None, answer: Any = None) -> Any:
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, StateGraph

        graph: Any = StateGraph(_State)
        for number in range(count):
            graph.add_node(f"s{number}", answer or _answer)
            graph.add_edge(f"s{number - 1}" if number else START, f"s{number}")
        return graph.compile(checkpointer=saver or InMemorySaver())

    def _fan(self, count: int) -> Any:
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, StateGraph
        from langgraph.types import Send

        graph: Any = StateGraph(_State)
        graph.add_node("each", _answer)
        graph.add_conditional_edges(START, lambda state: [Send("each", {"texts": []}) for _ in range(count)])
        return graph.compile(checkpointer=InMemorySaver())


class _State(TypedDict):
    texts: Annotated[list[str], operator.add]


async def _answer(state: _State) -> Any:
    return {"texts": [ANSWER]}


def _answer_at_once(state: _State) -> Any:
    return {"texts": [ANSWER]}


def beside_langgraph(present: list[Any], rounds: int, stages: int) -> bool:
    """Print what a stage costs beside LangGraph's, in memory and on SQLite; return whether that is met."""
    met = True
    for side in present:
        side.on_sqlite("chain", FEW)  # imports, caches
    for count in (stages, LONGER * stages):
        for how, budget in (("measure", IN_MEMORY), ("on_sqlite", ON_SQLITE)):
            taken = [[getattr(side, how)("chain", count) / count for side in present] for _ in range(rounds)]
            costs = "   ".join(
                f"{side.name} {median(row[place] for row in taken) * 1e6:>7,.0f}"
                for place, side in enumerate(present)
            )
            ratio = median(row[0] / row[-1] for row in taken)
            where = "in memory" if how == "measure" else "on SQLite"
            print(f"  among {count:>5}, {where}: {costs}   × {ratio:.2f} (budget {budget})")
            met &= len(present) == 1 or ratio <= budget
    return met


def sides(directory: str) -> list[Any]:
    found: list[Any] = [Harnpy(directory)]
    try:
        LangGraph().measure("chain", 1)
    except ImportError as error:
        print(f"LangGraph is left out: pip install langgraph ({error})")
    else:
        found.append(LangGraph(directory))
    return found


def main() -> None:
    arguments = parser(__doc__, rounds=5)
    arguments.add_argument("--stages", type=int, default=200, help="of a large workflow")
    options = arguments.parse_args()
    stages, met = options.stages, True
    long = LONGER * stages
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with TemporaryDirectory(dir=memory) as directory:
        present = sides(directory)
        for shape, title in (("chain", "one after the other"), ("fan", f"in a map, {WIDTH} at a time")):
            print(f"\nstages {title}: us a stage")
            for side in present:
                side.measure(shape, FEW)  # imports, caches
            taken: dict[str, list[tuple[float, float]]] = {side.name: [] for side in present}
            for _ in range(options.rounds):
                for side in present:
                    few, many = side.measure(shape, FEW) / FEW, side.measure(shape, stages) / stages
                    taken[side.name].append((few, many))
            for name, pairs in taken.items():
                few, many = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
                growth = median(pair[1] / pair[0] for pair in pairs)
                costs = f"{stages}: {many * 1e6:>8,.0f}   {FEW}: {few * 1e6:>8,.0f}"
                print(f"  {name:<12} {costs}   × {growth:.2f}")
                met &= name != Harnpy.name or growth < GROWTH
        print("\nstages one after the other, beside LangGraph: us a stage")
        met &= beside_langgraph(present, options.rounds, stages)
        ours = present[0]
        pairs = [
            (ours.measure("chain", stages // 2) / (stages // 2), ours.measure("chain", long) / long)
            for _ in range(options.rounds)
        ]
        growth = median(long / short for short, long in pairs)
        print(f"\na stage among {long} beside one among {stages // 2}: × {growth:.2f} (budget {LONG_GROWTH})")
        held = ours.held("chain", long)
        print(f"a run of {long} stages holds {held:.1f} MB (budget {HELD})")
        met &= growth <= LONG_GROWTH and held < HELD
        ideal = stages / WIDTH * LATENCY
        ratios = [ours.slow("fan", stages) / ideal for _ in range(options.rounds)]
        title = f"{stages} in a map, {WIDTH} at a time, {LATENCY * 1000:.0f} ms a call"
        print(f"\n{title}: × {median(ratios):.2f} ideal")
        met &= median(ratios) < OVERHEAD
    if options.check and not met:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
