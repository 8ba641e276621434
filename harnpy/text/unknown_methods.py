"""The words about a method that a value doesn't have, before the run and during it. Spec: 04 §3."""

from __future__ import annotations


def unknown_method(
    kind: str, name: str, hint: str, *, has_methods: bool, struct: str = "", is_field: bool = False
) -> str:
    """Return what is wrong with a call of ``name`` on a value of ``kind``; ``hint`` ends it.

    ``has_methods``: the kind has some. Of a struct, ``struct`` is the name; ``is_field``: it has a field
    called so.
    """
    if struct:
        end = f" (`{name}` is a field; bind it to a name before calling it)" if is_field else hint
        return f"unknown method `{name}` on struct {struct}{end}"
    if not has_methods:
        return f"cannot call method `{name}` on {kind}{hint}"
    rest = ", and no entry of that name" if kind == "dict" else ""
    return f"unknown method `{name}` on {kind}{rest}{hint}"
