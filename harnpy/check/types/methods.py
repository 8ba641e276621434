"""The types of method calls. Spec: 03 §5 ("Method results").

Only where the receiver's kind is known: the methods of a struct, or an entry of a dict that is called, may
have any name.
"""

from __future__ import annotations

from harnpy.check.types.fitting import settled
from harnpy.check.types.type_nodes import (
    ANY,
    FLOAT,
    INT,
    NIL,
    base,
    iter_of,
    known,
    list_of,
    named,
    pair_of,
    union,
)
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.check.types.declared import Questions
    from harnpy.check.types.type_nodes import Type

#: The kind of the receiver, the type of the result, and the methods that yield it.
RESULTS = """
string bool: contains starts_with ends_with empty
string int: count index_of
string string: trim lowercase uppercase reverse replace substring pad_left pad_right repeat
string list: split chars
string iter: iter
list bool: contains empty any all
list int: count index_of
list string: join
list list: map flat_map filter sort reverse window each_cons sliding_window
list iter: iter
dict bool: has
dict int: count
dict list: keys values entries
dict dict: filter merge map_values rekey map_keys
dict iter: iter
set bool: contains empty any all
set int: count
set set: map filter
set iter: iter
range bool: contains empty any all
range int: count
range string: to_string
range iter: iter map flat_map
iter bool: any all
iter int: count
iter nil: for_each
iter dict: to_dict
iter iter: map flat_map chain
Generator iter: iter
Stream iter: iter
"""
#: Methods of iterators that yield one of the same items, and those that yield one of the items or nil.
_SAME_ITEMS = frozenset("iter filter take skip take_while skip_while".split())
_ONE_ITEM = frozenset("min max first last find".split())
_GROUPS = frozenset("window each_cons sliding_window".split())


def table(text: str) -> dict[tuple[str, str], Type]:
    """The rows of `RESULTS` by kind and method."""
    results: dict[tuple[str, str], Type] = {}
    for row in text.strip().split("\n"):
        head, methods = row.split(": ")
        kind, type = head.split()
        results.update({(kind, method): named(type) for method in methods.split()})
    return results


_TABLE = table(RESULTS)


def method_result(types: Questions, receiver: Type | None, method: str) -> Type | None:
    """Return the type of `receiver.method(…)`; None when it isn't known."""
    type = types.unfolded(receiver) if receiver is not None else None
    if isinstance(type, ast.TypeShape):
        return _TABLE.get(("dict", method))
    if not isinstance(type, ast.TypeName):
        return None
    if types.declared.generic(type.name) is not None:
        return _of_declared(types, type, method)
    kind = base(type.name)
    return _precise(kind, type.args, method) or _TABLE.get((kind, method))


def _precise(kind: str, args: tuple[Type, ...], method: str) -> Type | None:
    """A result that says more than the table: about the items of a sequence, the values of a dict."""
    if kind == "iter":
        return _of_iterator(args[0] if args else ANY, method)
    if kind == "dict" and len(args) == 2:
        if method == "iter":
            return iter_of(pair_of(*args))
        # What `merge` adds, and what a function makes of a value or a key, may be anything.
        return None
    if kind in ("list", "Generator", "Stream") and args:
        if method == "iter":
            return iter_of(args[0])
        if kind == "list" and method in _GROUPS:
            return list_of(list_of(args[0]))
    return None


def _of_iterator(item: Type, method: str) -> Type | None:
    if method in _SAME_ITEMS:
        return iter_of(item)
    if method in _ONE_ITEM:
        return union([item, NIL]) if known(item) else None
    if method == "sum":
        return item if item in (INT, FLOAT) else None
    if method in ("chunks", "windows"):
        return iter_of(list_of(item))
    return {
        "zip": iter_of(pair_of(item, ANY)),
        "enumerate": iter_of(pair_of(INT, item)),
        "to_list": list_of(item),
        "to_set": named("set", item),
    }.get(method)


def _of_declared(types: Questions, type: ast.TypeName, method: str) -> Type | None:
    """Return what an `impl` method declares, or the method of an interface."""
    interface = types.declared.interfaces.get(type.name)
    methods: Iterable[ast.Node] = (
        interface.members if interface else types.declared.impls.get(type.name, {}).values()
    )
    for member in methods:
        if isinstance(member, ast.FnDecl | ast.MethodSig) and member.name == method:
            return _declared_result(types, type, member)
    return None


def _declared_result(types: Questions, type: ast.TypeName, method: ast.FnDecl | ast.MethodSig) -> Type | None:
    if method.returns is None:
        return None
    declared = types.declared.generic(type.name)
    params = declared.type_params if declared else ()
    bound = dict(zip([param.name for param in params], type.args, strict=False))
    free = [param.name for param in (*params, *method.type_params)]
    return settled(method.returns, free, bound)
