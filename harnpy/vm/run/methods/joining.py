"""Items put together: into one text, or into one list."""

from __future__ import annotations

from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.vm import Vm

    List = list[Any]


def joined(vm: Vm, items: List, sep: str) -> str:
    """The display text of the items, ``sep`` in between."""
    texts = [display(item) for item in vm.paced(items)]
    if len(texts) > 1:
        vm.sizes.check_text(sum(map(len, texts)) + len(sep) * (len(texts) - 1))
    return sep.join(texts)


def spliced(vm: Vm, items: List) -> List:
    """The items, in place of each list its own."""
    flat: List = []
    for item in vm.paced(items):
        if type(item) is list:
            flat += item
            vm.sizes.check_items(len(flat))
        else:
            flat.append(item)
    return flat
