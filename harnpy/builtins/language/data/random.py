"""Random numbers, from the world's source or from a seeded one. Spec: 04 §10 "Random".

A seeded generator may come before the other arguments, so these builtins count their arguments.
"""

from __future__ import annotations

from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import TypeFault
from harnpy.vm.values.objects import Rng
from harnpy.world.random import seeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm
    from harnpy.world.random import Random


#: Items that are shuffled in one go.
_MANY = 100_000


def _source(vm: Vm, *args: Value) -> tuple[Random, tuple[Value, ...]]:
    """The generator to use, and the arguments after it."""
    if type(args[0]) is Rng:
        return args[0].random, args[1:]
    return vm.world.random, args


@builtin("rng_seed(seed: any) -> rng", family="math")
def rng_seed(vm: Vm, seed: Value) -> Rng:
    """A generator whose numbers depend only on the int `seed`.

    Example:
        random_int(rng_seed(7), 1, 100) == random_int(rng_seed(7), 1, 100)  // true
    """
    if type(seed) is not int:
        raise TypeFault("rng_seed(seed): seed must be an integer")
    return Rng(seeded(seed))


@builtin("random(rng?: rng) -> float", family="math")
def random_float(vm: Vm, rng: Value) -> float:
    """A float from 0 up to but not including 1.

    Example:
        let x = random()
        x >= 0 && x < 1  // true
    """
    return _source(vm, rng)[0].random()


@builtin("random_int(rng?: rng, min: int, max: int) -> int", family="math", counted=True)
def random_int(vm: Vm, rng: Value = ABSENT, min: Value = ABSENT, max: Value = ABSENT) -> int | None:
    """An int from `min` to `max`, both included; nil if `max` is below `min`.

    Example:
        [1, 2, 3, 4, 5, 6].contains(random_int(1, 6))  // true
    """
    source, (low, high, *_) = _source(vm, rng, min, max)
    if low is ABSENT or high is ABSENT:
        return None
    for name, bound in (("min", low), ("max", high)):
        if type(bound) is not int:
            raise TypeFault(f"random_int: {name} must be an integer")
    return source.randint(low, high) if low <= high else None


@builtin("random_choice(rng?: rng, items: list) -> any", family="math", counted=True)
def random_choice(vm: Vm, rng: Value = ABSENT, items: Value = ABSENT) -> Value:
    """One of the items; nil unless given a non-empty list.

    Example:
        ["red", "blue"].contains(random_choice(["red", "blue"]))  // true
    """
    source, (choices, *_) = _source(vm, rng, items)
    return source.choice(choices) if type(choices) is list and choices else None


@builtin("random_shuffle(rng?: rng, items: list) -> list", family="math", counted=True)
def random_shuffle(vm: Vm, rng: Value = ABSENT, items: Value = ABSENT) -> list[Value] | None:
    """The items in a random order, as a new list; nil unless given a list.

    Example:
        random_shuffle(rng_seed(1), [1, 2, 3]).sort()  // [1, 2, 3]
    """
    source, (ordered, *_) = _source(vm, rng, items)
    if type(ordered) is not list:
        return None
    return source.sample(ordered, len(ordered)) if len(ordered) <= _MANY else _sample(vm, source, ordered)


def _sample(vm: Vm, source: Random, items: list[Value]) -> list[Value]:
    """What ``source.sample`` returns for all of many items, with looks at the deadline."""
    left, drawn = list(items), []
    for last in vm.paced(range(len(left) - 1, -1, -1)):
        at = source.randint(0, last)
        drawn.append(left[at])
        left[at] = left[last]
    return drawn
