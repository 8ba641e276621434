"""What a durable run remembers of its stages, and what a changed graph may do with those. Spec: 10 §C19.1.

A finished stage is kept with the text of its node and with digests of what else went into it. When the run
goes on with another graph, the stages that have run stay as they are, in their order; the graph says what
follows. So a graph is refused that would now run one of them otherwise, later, or not at all.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import MisuseError
from harnpy.formats.json import compact_json
from harnpy.workflow.graph import normalise_node
from harnpy.workflow.records.record_shapes import plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.execution.run_progress import Ready
    from harnpy.workflow.graph_shapes import Node

_DIGITS = 16
#: What stands for a function: whoever runs programs compares their texts.
_FUNCTION = "<function>"


class StagesChanged(MisuseError):
    """The graph doesn't fit the stages that have run. ``stages`` are those, by the ids of their nodes."""

    def __init__(self, run: str, problems: Mapping[str, str]) -> None:
        self.run = run
        self.stages = list(problems)
        told = "; ".join(f"'{id}' {why}" for id, why in problems.items())
        accept = " ".join(f"--accept-changes {id}" for id in problems)
        super().__init__(
            f"run '{run}' can't go on with this graph: stage {told}. Go on with the stored graph "
            f"(harnpy run --resume {run}), begin a new run, or keep what the stage came to: {accept}"
        )


def digest(value: Any) -> str:
    """Return a short text that stands for a value; of functions only that they are there."""
    return sha256(compact_json(_shown(value)).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def text_of(node: Node) -> Dict:
    """Return the text of a node: what it has beside the defaults. Of functions only that they are there."""
    given: Any = node
    usual: Any = normalise_node({"kind": given["kind"]}, given["id"])
    return {key: _shown(value) for key, value in given.items() if key not in usual or value != usual[key]}


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return _FUNCTION if callable(value) else plain_json(value)


def changed(output: Dict, text: Dict, inputs: Dict) -> str | None:
    """Return how a finished stage, which came to ``output``, would be another one now; None: not at all."""
    names = _differing(output["text"], text)
    if names:
        return f"was edited: its {_listed(names)}"
    names = _differing(output["inputs"], inputs)
    return f"would get something else: {_listed(names)}" if names else None


def _differing(former: Dict, now: Dict) -> list[str]:
    return sorted(key for key in former.keys() | now.keys() if former.get(key) != now.get(key))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


class Begun(NamedTuple):
    """A stage that a run has begun: the outputs of its attempts."""

    id: str
    attempts: list[Dict]

    @property
    def is_finished(self) -> bool:
        return self.attempts[-1]["again_at"] is None


def stages_of(outputs: Iterable[Dict]) -> list[Begun]:
    """Return the stages from what their attempts came to, in order."""
    stages: list[Begun] = []
    for output in outputs:
        if not stages or stages[-1].is_finished:
            stages.append(Begun(output["stage"]["node_id"], []))
        stages[-1].attempts.append(output)
    return stages


def check_path(
    run: str,
    begun: Iterable[Begun],
    ready: Ready,
    accepted: Collection[str],
    compare: Callable[[str, Dict], str | None],
) -> None:
    """Raise `StagesChanged` for stages that a graph has no place for, or has changed.

    ``ready`` is the graph's queue at its beginning, ``compare(id, output)`` what is wrong with a finished
    stage. One that is about to be tried again may be edited, but not removed.
    """
    problems: dict[str, str] = {}
    for id, attempts in begun:
        output = attempts[-1]
        is_finished = output["again_at"] is None
        problem = ready.problem_with(id) or (compare(id, output) if is_finished else None)
        if problem is not None and not (is_finished and id in accepted):
            problems.setdefault(id, problem)
        ready.take_again(id)
        ready.complete(id, output["stage"]["branch"])
    if problems:
        raise StagesChanged(run, problems)
