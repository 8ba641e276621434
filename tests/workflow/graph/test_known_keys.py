"""The keys that a graph may have are those that somebody reads."""

from __future__ import annotations

from harnpy.workflow.execution import verification
from harnpy.workflow.graph import CHECK_KEYS, CONTRACT_KEYS, VERIFICATION, VERIFY_KEYS


def test_verify_has_the_keys_of_contracts() -> None:
    contracts = {"contract", "contract_path", "verification_contract_path"}
    assert set(CONTRACT_KEYS) == set(verification._FIELDS)
    assert set(VERIFY_KEYS) == contracts | set(CONTRACT_KEYS)
    assert set(VERIFICATION) <= set(VERIFY_KEYS)
    assert set(CHECK_KEYS) == set(verification._CHECK)
