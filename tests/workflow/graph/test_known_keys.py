"""The keys that a graph may have are those that somebody reads."""

from __future__ import annotations

from harnpy.workflow.execution import verification
from harnpy.workflow.graph import VERIFICATION, VERIFY_KEYS


def test_verify_has_the_keys_of_contracts() -> None:
    contracts = {"contract", "contract_path", "verification_contract_path"}
    assert set(VERIFY_KEYS) == contracts | set(verification._FIELDS)
    assert set(VERIFICATION) <= set(VERIFY_KEYS)
