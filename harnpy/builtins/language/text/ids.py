"""UUIDs. Spec: 04 §10 "UUID"."""

from __future__ import annotations

import re
import uuid

from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

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


@builtin("uuid() -> string", family="io")
def new_uuid(vm: Vm) -> str:
    """A new UUID, version 7: later ones sort after earlier ones.

    Example:
        len(uuid())  // 36
    """
    return str(vm.world.ids.new())


@builtin("uuid_v7() -> string", family="io")
def uuid_v7(vm: Vm) -> str:
    """A new UUID, version 7: later ones sort after earlier ones.

    Example:
        uuid_v7() < uuid_v7()  // true
    """
    return str(vm.world.ids.new())


@builtin("uuid_v5(namespace: string, name: string) -> string", family="io", counted=True)
def uuid_v5(vm: Vm, namespace: Value = ABSENT, name: Value = ABSENT) -> str:
    """The UUID of `name` within `namespace`: a UUID, or `dns`, `url`, `oid`, `x500`.

    Example:
        uuid_v5("dns", "example.org")  // "aad03681-8b63-5304-89e0-8ca8f49461b5"
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
    """The canonical spelling of a UUID (braced, `urn:uuid:`, without hyphens …); nil for anything else.

    Example:
        uuid_parse("{C56A4180-65AA-42EC-A945-5FD21DEC0538}")  // "c56a4180-65aa-42ec-a945-5fd21dec0538"
    """
    parsed = _parsed(s)
    return str(parsed) if parsed else None


@builtin("uuid_nil() -> string", family="io")
def uuid_nil(vm: Vm) -> str:
    """The UUID of zeros.

    Example:
        uuid_nil()  // "00000000-0000-0000-0000-000000000000"
    """
    return str(uuid.UUID(int=0))
