"""Random numbers and UUIDs. Spec: 04 §10 "Random", "UUID"."""

from __future__ import annotations

import re
import uuid

from harnpy.faults import paced
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault, TypeFault
from harnpy.vm.values import Rng, display
from harnpy.world.random import seeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm
    from harnpy.world.random import Random

# Random numbers, from the world's source or from a seeded one. Spec: 04 §10 "Random".
#
# A seeded generator may come before the other arguments, so these builtins count their arguments.


#: Items that are shuffled in one go.
_MANY = 1000


def _source(vm: Vm, *args: Value) -> tuple[Random, tuple[Value, ...]]:
    """Return the generator to use, and the arguments after it."""
    if type(args[0]) is Rng:
        return args[0].random, args[1:]
    return vm.world.random, args


@builtin("rng_seed(seed: any) -> rng", family="math")
def rng_seed(vm: Vm, seed: Value) -> Rng:
    """Return a generator whose numbers depend only on the int `seed`.

    Example: random_int(rng_seed(7), 1, 100) == random_int(rng_seed(7), 1, 100)  // true
    """
    if type(seed) is not int:
        raise TypeFault("rng_seed(seed): seed must be an integer")
    return Rng(seeded(seed))


@builtin("random(rng?: rng) -> float", family="math")
def random_float(vm: Vm, rng: Value) -> float:
    """Return a float from 0 up to, but not including, 1.

    Example:
        let x = random()
        x >= 0 && x < 1  // true
    """
    return _source(vm, rng)[0].random()


@builtin("random_int(rng?: rng, min: int, max: int) -> int?", family="math", counted=True)
def random_int(vm: Vm, rng: Value = ABSENT, min: Value = ABSENT, max: Value = ABSENT) -> int | None:
    """Return an int from `min` to `max`, inclusive; nil if `max` is below `min`.

    Example: [1, 2, 3, 4, 5, 6].contains(random_int(1, 6))  // true
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
    """Return one of the items; nil for anything but a non-empty list.

    Example: ["red", "blue"].contains(random_choice(["red", "blue"]))  // true
    """
    source, (choices, *_) = _source(vm, rng, items)
    return source.choice(choices) if type(choices) is list and choices else None


@builtin("random_shuffle(rng?: rng, items: list) -> list?", family="math", counted=True)
def random_shuffle(vm: Vm, rng: Value = ABSENT, items: Value = ABSENT) -> list[Value] | None:
    """Return the items in random order, as a new list; nil for anything but a list.

    Example: random_shuffle(rng_seed(1), [1, 2, 3]).sort()  // [1, 2, 3]
    """
    source, (ordered, *_) = _source(vm, rng, items)
    if type(ordered) is not list:
        return None
    return source.sample(ordered, len(ordered)) if len(ordered) <= _MANY else _sample(vm, source, ordered)


def _sample(vm: Vm, source: Random, items: list[Value]) -> list[Value]:
    """Return what ``source.sample`` does for all of many items, with looks at the deadline."""
    left, drawn = list(items), []
    for last in paced(range(len(left) - 1, -1, -1)):
        at = source.randint(0, last)
        drawn.append(left[at])
        left[at] = left[last]
    return drawn


_NAMESPACES = {
    "dns": uuid.NAMESPACE_DNS,
    "url": uuid.NAMESPACE_URL,
    "oid": uuid.NAMESPACE_OID,
    "x500": uuid.NAMESPACE_X500,
}
_HYPHENATED = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_SPELLINGS = re.compile(
    rf"[0-9a-f]{{32}}|{_HYPHENATED}|\{{{_HYPHENATED}\}}|urn:uuid:{_HYPHENATED}", re.IGNORECASE | re.ASCII
)


def _parsed(text: str) -> uuid.UUID | None:
    return uuid.UUID(text) if _SPELLINGS.fullmatch(text) else None


@builtin("uuid_v7() -> string", family="io")
@builtin("uuid() -> string", family="io")
def new_uuid(vm: Vm) -> str:
    """Return a new UUID of version 7; later ones sort after earlier ones.

    Example: uuid() < uuid_v7()  // true
    """
    return str(vm.world.ids.new())


@builtin("uuid_v5(namespace: string, name: string) -> string", family="io", counted=True)
def uuid_v5(vm: Vm, namespace: Value = ABSENT, name: Value = ABSENT) -> str:
    """Return the UUID of `name` within `namespace`: a UUID, or `dns`, `url`, `oid`, `x500`.

    Example: uuid_v5("dns", "example.org")  // "aad03681-8b63-5304-89e0-8ca8f49461b5"
    """
    if name is ABSENT:
        raise RuntimeFault("uuid_v5(namespace, name): requires namespace and name")
    text = display(namespace)
    space = _NAMESPACES.get(text.lower().removeprefix("namespace_")) or _parsed(text)
    if space is None:
        raise RuntimeFault("uuid_v5: namespace must be a UUID or one of dns/url/oid/x500")
    return str(uuid.uuid5(space, display(name)))


@builtin("uuid_parse(s: string) -> string | nil", family="io")
def uuid_parse(vm: Vm, s: str) -> str | None:
    """Return the canonical form of a UUID (braced, `urn:uuid:`, without hyphens …); nil for anything else.

    Example: uuid_parse("{C56A4180-65AA-42EC-A945-5FD21DEC0538}")  // "c56a4180-65aa-42ec-a945-5fd21dec0538"
    """
    parsed = _parsed(s)
    return str(parsed) if parsed else None


@builtin("uuid_nil() -> string", family="io")
def uuid_nil(vm: Vm) -> str:
    """Return the UUID of all zeros.

    Example: uuid_nil()  // "00000000-0000-0000-0000-000000000000"
    """
    return str(uuid.UUID(int=0))
