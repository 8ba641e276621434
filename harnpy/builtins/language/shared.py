"""Cells, maps and mailboxes: what tasks share by name. Spec: 04 §28, 05 §8.2, §8.3, §8.4."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.task_context import handle, place_of, place_to_open
from harnpy.vm.declare import ABSENT, require
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.run.channels import DEFAULT_CAPACITY, Mailbox, Mailboxes
from harnpy.vm.run.locks import Cell, SharedMap
from harnpy.vm.values import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.builtins.language.task_context import Place
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# Mailboxes: queues that tasks find by name. Spec: 05 §8.4.


builtin = partial(declare, family="concurrency", counted=True)

_KIND = "mailbox"
#: What `mailbox_metrics` says of a mailbox that does not exist.
_NO_METRICS = {
    **dict.fromkeys(("capacity", "depth", "sent_count", "received_count", "failed_send_count"), 0),
    "closed": False,
}


@builtin("mailbox_open(name: any, capacity: int = 256) -> dict")
def mailbox_open(vm: Vm, name: Value = ABSENT, capacity: Value = DEFAULT_CAPACITY) -> Value:
    """Open a mailbox, created on first use with room for `capacity` messages; return its handle.

    `name`: a name, or `{name, scope?, capacity?, tenant_id?}`. The default scope is `task_group`.

    Example:
        let inbox = mailbox_open("desk")
        mailbox_send(inbox, "hi")
        mailbox_receive(inbox)  // "hi"
    """
    place = place_to_open(vm, "mailbox_open", _KIND, name)
    if type(name) is dict:
        capacity = name.get("capacity", capacity)
    mailboxes = vm.state(Mailboxes)
    if place not in mailboxes:
        room = capacity if type(capacity) is int else DEFAULT_CAPACITY
        mailboxes[place] = Mailbox(vm.tasks, place[1], room)
    return handle(_KIND, place)


@builtin("mailbox_lookup(target: any) -> dict | nil")
def mailbox_lookup(vm: Vm, target: Value = ABSENT) -> Value:
    """Return the handle of an open mailbox, or nil if there is none with that name.

    Example: mailbox_lookup("no such mailbox")  // nil
    """
    found = _found(vm, "mailbox_lookup", target, "name or handle is required")
    return handle(_KIND, place_of(vm, "mailbox_lookup", _KIND, target)) if found else None


@builtin("mailbox_send(target: any, value: any) -> bool")
def mailbox_send(vm: Vm, target: Value = ABSENT, value: Value = ABSENT) -> bool:
    """Put a message into a mailbox, waiting while it is full; false if it is closed or doesn't exist.

    Example:
        mailbox_open("tray")
        mailbox_send("tray", {job: 1})  // true
    """
    require("mailbox_send: requires target and value", value)
    mailbox = _found(vm, "mailbox_send", target, "requires target and value")
    return mailbox is not None and mailbox.send(value)


@builtin("mailbox_receive(target: any) -> any")
def mailbox_receive(vm: Vm, target: Value = ABSENT) -> Value:
    """Wait for the next message of a mailbox; nil once it is closed and empty, or if it doesn't exist.

    Example:
        mailbox_open("post")
        mailbox_send("post", "hi")
        mailbox_receive("post")  // "hi"
    """
    mailbox = _found(vm, "mailbox_receive", target)
    return None if mailbox is None else next(mailbox, None)


@builtin("mailbox_try_receive(target: any) -> any")
def mailbox_try_receive(vm: Vm, target: Value = ABSENT) -> Value:
    """Return the next message of a mailbox, or nil without waiting.

    Example:
        mailbox_open("empty")
        mailbox_try_receive("empty")  // nil
    """
    mailbox = _found(vm, "mailbox_try_receive", target)
    return mailbox.take() if mailbox and mailbox.readable else None


@builtin("mailbox_close(target: any) -> bool")
def mailbox_close(vm: Vm, target: Value = ABSENT) -> bool:
    """Close a mailbox to new messages; those in it can still be received. True if it was open.

    Example:
        mailbox_open("inbox")
        [mailbox_close("inbox"), mailbox_send("inbox", "late")]  // [true, false]
    """
    mailbox = _found(vm, "mailbox_close", target)
    if mailbox is None or mailbox.closed:
        return False
    mailbox.close()
    return True


@builtin("mailbox_metrics(target: any) -> dict")
def mailbox_metrics(vm: Vm, target: Value = ABSENT) -> Value:
    """Return `{capacity, depth, sent_count, received_count, failed_send_count, closed}`.

    Example:
        mailbox_open("letters")
        mailbox_send("letters", "hi")
        mailbox_metrics("letters").depth  // 1
    """
    mailbox = _found(vm, "mailbox_metrics", target)
    return mailbox.metrics() if mailbox else dict(_NO_METRICS)


def _found(vm: Vm, function: str, target: Value, missing: str = "target is required") -> Mailbox | None:
    if target is ABSENT or target is None:
        raise RuntimeFault(f"{function}: {missing}")
    return vm.state(Mailboxes).get(place_of(vm, function, _KIND, target))


# Cells and maps that tasks share by name. Spec: 05 §8.2, §8.3, 04 §28.


_CELL, _MAP = "shared_cell", "shared_map"


class Cells(dict[tuple[str, str], Cell]):
    """The cells of one program, by scope and key."""


class Maps(dict[tuple[str, str], SharedMap]):
    """The same for maps."""


@builtin("shared_cell(key: any, initial?: any) -> dict")
def shared_cell(vm: Vm, key: Value = ABSENT, initial: Value = None) -> Value:
    """Open a cell for one value, created on first use with `initial`; return its handle.

    `key`: a name, or `{key, scope?, initial?, tenant_id?}`. The default scope is `task_group`.

    Example:
        let cell = shared_cell("total", 5)
        shared_get(cell)  // 5
    """
    place = place_to_open(vm, "shared_cell", _CELL, key)
    cells = vm.state(Cells)
    if place not in cells:
        cells[place] = Cell(_initial(key, initial))
    return handle(_CELL, place)


@builtin("shared_get(handle: any) -> any")
def shared_get(vm: Vm, handle: Value = ABSENT) -> Value:
    """Return the value of a cell, or nil if the cell doesn't exist.

    Example: shared_get(shared_cell("limit", 10))  // 10
    """
    return _cell(vm, "shared_get", handle, "handle is required").get()


@builtin("shared_set(handle: any, value: any) -> any")
def shared_set(vm: Vm, handle: Value = ABSENT, value: Value = None) -> Value:
    """Store `value` in a cell; return the former value.

    Example:
        let cell = shared_cell("state", "idle")
        [shared_set(cell, "busy"), shared_get(cell)]  // ["idle", "busy"]
    """
    return _cell(vm, "shared_set", handle, "handle is required", writes=True).set(value)


@builtin("shared_snapshot(handle: any) -> dict")
def shared_snapshot(vm: Vm, handle: Value = ABSENT) -> Value:
    """Return the value of a cell and its version, for `shared_cas`: `{_type, value, version}`.

    Example:
        let cell = shared_cell("balance", 10)
        let seen = shared_snapshot(cell)
        shared_cas(cell, seen, seen.value - 3)  // true
    """
    return _cell(vm, "shared_snapshot", handle, "handle is required").snapshot()


@builtin("shared_cas(handle: any, expected: any, new: any) -> bool")
def shared_cas(vm: Vm, handle: Value = ABSENT, expected: Value = ABSENT, new: Value = ABSENT) -> bool:
    """Store `new` in a cell if its value equals `expected`; return whether it did.

    `expected` may be a snapshot; then the result is false if anything was written since.

    Example:
        let cell = shared_cell("owner")
        [shared_cas(cell, nil, "ada"), shared_cas(cell, nil, "bob")]  // [true, false]
    """
    require("shared_cas: requires handle, expected, and new value", expected, new)
    cell = _cell(vm, "shared_cas", handle, "requires handle, expected, and new value", writes=True)
    return cell.swap(expected, new)


@builtin("shared_map(key: any, initial?: dict) -> dict")
def shared_map(vm: Vm, key: Value = ABSENT, initial: Value = None) -> Value:
    """Open a map, created on first use with the entries of `initial`; return its handle.

    `key`: a name, or `{key, scope?, initial?, tenant_id?}`. The default scope is `task_group`.

    Example:
        let stock = shared_map("stock", {bolts: 3})
        shared_map_get(stock, "bolts")  // 3
    """
    place = place_to_open(vm, "shared_map", _MAP, key)
    maps = vm.state(Maps)
    if place not in maps:
        entries = _initial(key, initial)
        if entries is not None and type(entries) is not dict:
            raise RuntimeFault(f"shared_map: initial must be a dict, got {type_name(entries)}")
        maps[place] = SharedMap(entries)
    return handle(_MAP, place)


@builtin("shared_map_get(handle: any, key: any, default?: any) -> any")
def shared_map_get(vm: Vm, handle: Value = ABSENT, key: Value = ABSENT, default: Value = None) -> Value:
    """Return the entry under `key`, or `default`.

    Example: shared_map_get(shared_map("nothing"), "tea", 0)  // 0
    """
    require("shared_map_get: requires handle and key", key)
    return _map(vm, "shared_map_get", handle, "requires handle and key").get(display(key), default)


@builtin("shared_map_set(handle: any, key: any, value: any) -> any")
def shared_map_set(vm: Vm, handle: Value = ABSENT, key: Value = ABSENT, value: Value = ABSENT) -> Value:
    """Store `value` under `key`; return the former value, or nil.

    Example:
        let m = shared_map("ages")
        [shared_map_set(m, "ada", 36), shared_map_get(m, "ada")]  // [nil, 36]
    """
    require("shared_map_set: requires handle, key, and value", key, value)
    shared = _map(vm, "shared_map_set", handle, "requires handle, key, and value", writes=True)
    return shared.set(display(key), value)


@builtin("shared_map_delete(handle: any, key: any) -> any")
def shared_map_delete(vm: Vm, handle: Value = ABSENT, key: Value = ABSENT) -> Value:
    """Remove the entry under `key`; return its value, or nil.

    Example:
        let m = shared_map("drawer", {a: 1})
        [shared_map_delete(m, "a"), shared_map_entries(m)]  // [1, {}]
    """
    require("shared_map_delete: requires handle and key", key)
    return _map(vm, "shared_map_delete", handle, "requires handle and key").delete(display(key))


@builtin("shared_map_entries(handle: any) -> dict")
def shared_map_entries(vm: Vm, handle: Value = ABSENT) -> Value:
    """Return all entries, as a dict.

    Example: shared_map_entries(shared_map("prices", {tea: 2}))  // {tea: 2}
    """
    return _map(vm, "shared_map_entries", handle, "handle is required").entries()


@builtin("shared_map_snapshot(handle: any, key: any) -> dict")
def shared_map_snapshot(vm: Vm, handle: Value = ABSENT, key: Value = ABSENT) -> Value:
    """Return the entry under `key` with the map's version, for `shared_map_cas`.

    Example:
        let m = shared_map("queue", {next: 1})
        let seen = shared_map_snapshot(m, "next")
        shared_map_cas(m, "next", seen, seen.value + 1)  // true
    """
    require("shared_map_snapshot: requires handle and key", key)
    return _map(vm, "shared_map_snapshot", handle, "requires handle and key").snapshot(display(key))


@builtin("shared_map_cas(handle: any, key: any, expected: any, new: any) -> bool")
def shared_map_cas(
    vm: Vm,
    handle: Value = ABSENT,
    key: Value = ABSENT,
    expected: Value = ABSENT,
    new: Value = ABSENT,
) -> bool:
    """Store `new` under `key` if the entry equals `expected` (nil: no entry); return whether it did.

    A `new` of nil removes the entry. `expected` may be a snapshot: then nothing may have been written to the
    map since it was taken.

    Example:
        let seats = shared_map("seats")
        [shared_map_cas(seats, "1A", nil, "ada"), shared_map_cas(seats, "1A", nil, "bob")]  // [true, false]
    """
    missing = "requires handle, key, expected, and new value"
    require(f"shared_map_cas: {missing}", key, expected, new)
    return _map(vm, "shared_map_cas", handle, missing, writes=True).swap(display(key), expected, new)


@builtin("shared_metrics(handle?: any) -> dict | list")
def shared_metrics(vm: Vm, handle: Value = None) -> Value:
    """Return how often a cell, map or mailbox was used; without a handle, a list of all of them.

    Example: shared_metrics(shared_cell("gauge", 1)).version >= 0  // true
    """
    if type(handle) is not dict:
        return _all_metrics(vm)
    kind = handle.get("_type")
    if kind is None:
        raise RuntimeFault("shared_metrics: handle missing _type")
    if kind == "mailbox":
        return mailbox_metrics(vm, handle)
    if kind == _MAP:
        return vm.state(Maps).get(place_of(vm, "shared_metrics", kind, handle), SharedMap()).metrics()
    return vm.state(Cells).get(place_of(vm, "shared_metrics", _CELL, handle), Cell()).metrics()


def _all_metrics(vm: Vm) -> list[Value]:
    return [
        *_metrics_of(_CELL, vm.state(Cells)),
        *_metrics_of(_MAP, vm.state(Maps)),
        *_metrics_of("mailbox", vm.state(Mailboxes)),
    ]


def _metrics_of(kind: str, shared: Mapping[Place, Cell | SharedMap | Mailbox]) -> list[Value]:
    return [{**handle(kind, place), **shared[place].metrics()} for place in sorted(shared)]


def _initial(options: Value, given: Value) -> Value:
    """Return the value of a new cell or map: as the options say, else the second argument."""
    return options["initial"] if type(options) is dict and "initial" in options else given


def _cell(vm: Vm, function: str, target: Value, missing: str, writes: bool = False) -> Cell:
    """Return the cell, an empty one when it was never opened; who writes opens it."""
    place = _place(vm, function, _CELL, target, missing)
    cells = vm.state(Cells)
    return cells.get(place) or (cells.setdefault(place, Cell()) if writes else Cell())


def _map(vm: Vm, function: str, target: Value, missing: str, writes: bool = False) -> SharedMap:
    place = _place(vm, function, _MAP, target, missing)
    maps = vm.state(Maps)
    return maps.get(place) or (maps.setdefault(place, SharedMap()) if writes else SharedMap())


def _place(vm: Vm, function: str, kind: str, target: Value, missing: str) -> Place:
    if target is ABSENT or target is None:
        raise RuntimeFault(f"{function}: {missing}")
    return place_of(vm, function, kind, target)
