"""Verification: contracts that tell stages beforehand what will be verified, and checks of their results.

A contract combines the file that a node's `verify` names, `verify.contract` and `verify` itself: the first
value counts, lists are merged. Spec: 08 §7.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.formats.dicts import errors_after, read_fields
from harnpy.formats.json import parse_json, to_json
from harnpy.workflow.artifacts import escaped, lines_of, tagged
from harnpy.workflow.graph import check_contract_keys
from harnpy.world.files import system_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harnpy.formats.dicts import Dict
    from harnpy.workflow.graph_shapes import Node


def verified(node: Node, result: Dict) -> Dict:
    """Return the outcome of the checks that the node's `verify` asks for."""
    verify = node["verify"] or {}
    checks = []
    text, status = verify.get("assert_text"), verify.get("expect_status")
    if text is not None:
        ok = str(text) in (result["visible_text"] or "")
        checks.append({"kind": "assert_text", "ok": ok, "expected": text})
    if status is not None:
        actual = result.get("exit_status")
        checks.append({"kind": "expect_status", "ok": actual == status, "expected": status, "actual": actual})
    if not checks:
        return {"kind": "none", "ok": True}
    return {"kind": "composite", "ok": all(check["ok"] for check in checks), "checks": checks}


def failed_check(check: Dict) -> str | None:
    """Return what a check of `verified` missed; None if it holds."""
    if check.get("ok"):
        return None
    if check.get("kind") == "assert_text":
        return f"the output lacks {to_json(check.get('expected'))}"
    return f"the exit status is {to_json(check.get('actual'))} instead of {to_json(check.get('expected'))}"


LOCAL_ONLY = "local_only"

_SCALARS = {
    "summary": "string", "command": "string", "expect_status": "int", "assert_text": "string",
    "expect_text": "string",
}  # fmt: skip
_LISTS = {
    "required_identifiers": ("identifiers",),
    "required_paths": ("paths",),
    "required_text": ("exact_text", "required_strings"),
    "notes": (),
}
_FIELDS = {
    **_SCALARS,
    **{name: "list of strings" for key, aliases in _LISTS.items() for name in (key, *aliases)},
    "checks": "list",
}
_CHECK = {"kind": "string", "value": "any", "note": "string"}

#: The checks that follow from other fields: their kind, by field.
_DERIVED = {
    "assert_text": "visible_text_contains",
    "expect_text": "combined_output_contains",
    "expect_status": "expect_status",
    "required_identifiers": "identifier",
    "required_paths": "path",
    "required_text": "text",
}

_INTRODUCTION = (
    "What this workflow makes will be verified against the contracts below. Use identifiers, paths and texts "
    "exactly as they stand there."
)
_SECTIONS = ("required_identifiers", "required_paths", "required_text", "checks", "notes")


def read_contracts(nodes: Mapping[str, Node], read_text: Callable[[str], str]) -> list[Dict]:
    """Return the contracts of all nodes that verify something, sorted by node id. Raise `MisuseError`."""
    verifying = {id: node["verify"] for id, node in sorted(nodes.items())}
    return [_contract(id, verify, read_text) for id, verify in verifying.items() if verify is not None]


def contracts_for(node: Node, contracts: Sequence[Dict]) -> list[Dict]:
    """Return the contracts that the node's prompt shows."""
    if node["metadata"].get("workflow_verification_scope") != LOCAL_ONLY:
        return list(contracts)
    return [contract for contract in contracts if contract["source_node"] == node["id"]]


# Reading.


def _contract(id: str, verify: Dict, read_text: Callable[[str], str]) -> Dict:
    sources = list(_sources(id, verify, read_text))
    contract: Dict = {"source_node": id}
    for key in _SCALARS:
        values = (source[key] for source in sources)
        contract[key] = next((value for value in values if value is not None and value != ""), None)
    for key, aliases in _LISTS.items():
        lists = [source[name] or [] for source in sources for name in (key, *aliases)]
        contract[key] = _united(item.strip() for items in lists for item in items)
    checks = [check for source in sources for check in source["checks"] or []]
    contract["checks"] = list(_without_repeats([*checks, *_derived(contract)]))
    return contract


def _sources(id: str, verify: Dict, read_text: Callable[[str], str]) -> Iterator[Dict]:
    path = verify.get("contract_path") or verify.get("verification_contract_path")
    if path:
        read = _read(str(path), read_text)
        with errors_after(f"workflow verification contract parse failed for {path}: "):
            check_contract_keys(read, "")
            fields = _fields(read, "")
        yield fields
    inner = verify.get("contract")
    if inner is not None:
        if not isinstance(inner, dict):
            raise MisuseError("workflow verify.contract must be an object")
        yield _fields(inner, f"nodes.{id}.verify.contract")
    yield _fields(verify, f"nodes.{id}.verify")


def _read(path: str, read_text: Callable[[str], str]) -> Dict:
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise MisuseError(
            f"workflow verification contract read failed for {path}: {system_reason(error)}"
        ) from error
    try:
        read = parse_json(text)
    except ValueError as error:
        raise MisuseError(f"workflow verification contract parse failed for {path}: {error}") from error
    if not isinstance(read, dict):
        raise MisuseError("workflow verification contract file must parse to a JSON object")
    return read


def _fields(given: Dict, path: str) -> Dict:
    fields = read_fields(given, _FIELDS, path)
    place = f"{path}.checks" if path else "checks"
    checks = [
        read_fields(check, _CHECK, f"{place}[{index}]") for index, check in enumerate(fields["checks"] or [])
    ]
    return {**fields, "checks": checks}


def _derived(contract: Dict) -> Iterator[Dict]:
    for key, kind in _DERIVED.items():
        value = contract[key]
        for each in value if isinstance(value, list) else [value]:
            if each is not None:
                yield {"kind": kind, "value": each, "note": None}


def _without_repeats(checks: list[Dict]) -> Iterator[Dict]:
    """Yield the checks, each kind with each value once."""
    seen = []
    for check in checks:
        named = (check["kind"], check["value"])
        if named not in seen:
            seen.append(named)
            yield check


def _united(items: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, items)))


# Rendering.


def render_contract(contracts: Sequence[Dict]) -> str:
    """Render the contracts for a prompt."""
    return "\n".join([_INTRODUCTION, *map(_rendered, contracts)]) if contracts else ""


def _rendered(contract: Dict) -> str:
    scalars = {key: contract[key] for key in ("source_node", *_SCALARS) if contract[key] is not None}
    lists = [_rendered_list(key, contract[key]) for key in _SECTIONS if contract[key]]
    return tagged("contract", "\n".join([*lines_of(scalars), *lists]))


def _rendered_list(name: str, items: Sequence[Any]) -> str:
    return tagged(name, "\n".join(f"- {escaped(_line(item))}" for item in items))


def _line(item: Any) -> str:
    if isinstance(item, str):
        return item
    note = f" ({item['note']})" if item["note"] else ""
    return f"{item['kind']}: {item['value']}{note}"
