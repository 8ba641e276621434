"""Egress policies as programs and embedders write them: a dict of rules. Spec: 04 §21.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import Fault, OptionError
from harnpy.formats.display import display, type_name
from harnpy.formats.options import OptionTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.world.egress_rules import Policy

TABLE = OptionTable("""
    allow: list — hosts, `*.suffix`, addresses, ranges or URLs that may be reached, each with a `:port` or not
    deny: list — those that may not; they beat `allow`
    default: string — `allow` or `deny`: what holds for the rest; `deny` beside a list `allow`, else `allow`
""")


def read_config(function: str, config: Any, source: str) -> Policy:
    """Return the policy of ``config``, which ``function`` was called with. Raises `Fault`."""
    from harnpy.world.egress_rules import read_policy  # the table is for those, too, who have no policy

    if not isinstance(config, dict):
        raise OptionError(f"{function}: requires a config dict")
    TABLE.check(function, config)
    allow, deny = (_rules(function, key, config.get(key)) for key in ("allow", "deny"))
    default = config.get("default")
    return read_policy(allow, deny, None if default is None else display(default), source)


def embedders_policy(config: Mapping[str, Any]) -> Policy:
    """Return the policy that an embedder gives a Vm. Raises ValueError."""
    from harnpy.world.egress_rules import EMBEDDER

    try:
        return read_config("egress", dict(config), EMBEDDER)
    except Fault as error:
        raise ValueError(error.message_from("egress")) from None


def _rules(function: str, key: str, value: Any) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise OptionError(f"{function}: {key} must be a list")
    for rule in value:
        if not isinstance(rule, str):
            raise OptionError(f"{function}: {key} must be a list of strings, got {type_name(rule)} in it")
    return value
