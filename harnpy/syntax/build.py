"""The grammar to the parse table that ships. Spec: 01 §8.

Lark reads ``grammar/harn.lark`` and computes the LALR(1) automaton; the result is one
marshalled tuple, ready for `harnpy.syntax.tables`. Runs when the package is built (``hatch_build.py``),
and in a source checkout when the grammar has changed. Needs lark; nothing at run time does.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark.grammar import Rule, Symbol
    from lark.parsers.lalr_analysis import LALR_Analyzer

STARTS = ("program", "interpolation")


def build(grammar: bytes, key: bytes) -> bytes:
    """The table of a grammar, marshalled; it begins with ``key``.

    Raises lark's GrammarError when the grammar is not LALR(1).
    """
    analysis, kinds = _analyse(grammar.decode())
    table = analysis.parse_table
    starts = [table.start_states[start] for start in STARTS]
    ends = [table.end_states[start] for start in STARTS]
    states = _ordered(table.states, starts)
    numbers = {state: i for i, state in enumerate(states)}
    rules = _rules(table.states)
    rule_numbers = {rule: i for i, rule in enumerate(rules)}
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in states:
        row: dict[str, int] = {"$END": 0} if state in ends else {}
        jumps: dict[str, int] = {}
        for symbol, target in _targets(table.states[state]):
            if target in rule_numbers:
                row[kinds(symbol)] = -1 - rule_numbers[target]
            elif symbol.lower() == symbol:
                jumps[symbol] = numbers[target]
            else:
                row[kinds(symbol)] = numbers[target]
        actions.append(row)
        gotos.append(jumps)
    lookaheads, packed = _packed(actions, gotos)
    pieces = [
        *packed,
        *(_marshalled(_described(rule)) for rule in rules),
        *map(_marshalled, lookaheads),
        _marshalled([_roles(state) for state in states]),
    ]
    begins = b"".join(begin.to_bytes(4, "little") for begin in accumulate(map(len, pieces), initial=0))
    head = (
        key,
        begins,
        len(packed),
        len(rules),
        sum(not _is_unit(rule) for rule in rules),
        {start: i for i, start in enumerate(STARTS)},
    )
    return _marshalled(head) + b"".join(pieces)


def _packed(
    actions: list[dict[str, int]], gotos: list[dict[str, int]]
) -> tuple[list[tuple[str, ...]], list[bytes]]:
    """The sets of tokens that rows refer to, and each state by itself, marshalled.

    A state is the commonest reduction of its row, the number of the set of tokens that it is for, the other
    actions, and the gotos. Most rows are little more than one reduction, and few sets are different.
    """
    sets: dict[tuple[str, ...], int] = {}
    states = []
    for row, jumps in zip(actions, gotos, strict=True):
        reductions = Counter(action for action in row.values() if action < 0)
        common = max(reductions, key=lambda action: (reductions[action], action), default=0)
        tokens = tuple(kind for kind, action in row.items() if action == common and common < 0)
        rest = {kind: action for kind, action in row.items() if kind not in tokens}
        states.append(_marshalled((common, sets.setdefault(tokens, len(sets)), rest, jumps)))
    return list(sets), states


def _targets(row: dict[str, tuple[Any, Any]]) -> list[tuple[str, Any]]:
    """Symbol and target (a state or a rule) of each action, in an order that does not vary."""
    return sorted(((str(symbol), target) for symbol, (_, target) in row.items()), key=itemgetter(0))


def _ordered(states: dict[Any, dict[str, tuple[Any, Any]]], starts: list[Any]) -> list[Any]:
    """The states in the order in which they are reached, which does not vary; Lark's own does.

    The start states come first: nothing shifts to those, which leaves action 0 to mean "accept".
    """
    order = dict.fromkeys(starts)
    reached = list(starts)
    for state in reached:
        for _, target in _targets(states[state]):
            if target in states and target not in order:
                order[target] = None
                reached.append(target)
    return reached


def save(table: bytes, path: str | os.PathLike[str]) -> None:
    """Write the file in one step: another process may be reading it."""
    partial = f"{os.fspath(path)}.{os.getpid()}"
    with open(partial, "wb") as file:
        file.write(table)
    os.replace(partial, path)


def _analyse(grammar: str) -> tuple[LALR_Analyzer, Callable[[str], str]]:
    """The automaton, and what turns the name of a terminal into the token kind."""
    from lark.common import ParserConf
    from lark.load_grammar import load_grammar
    from lark.parsers.lalr_analysis import LALR_Analyzer

    compiled, _ = load_grammar(grammar, "harn.lark", [], False)  # type: ignore[no-untyped-call]
    terminals, rules, _ = compiled.compile(list(STARTS), "*")
    analysis = LALR_Analyzer(ParserConf(rules, {}, list(STARTS)), debug=True)
    analysis.compute_lalr()  # type: ignore[no-untyped-call]
    texts = {terminal.name: str(terminal.pattern.value) for terminal in terminals}
    return analysis, lambda name: texts.get(name, name.removeprefix("_"))


def _rules(states: dict[Any, dict[str, tuple[Any, Any]]]) -> list[Rule]:
    """The rules that the automaton reduces by; those that only hand on their one value come last."""
    targets = {target for row in states.values() for _, target in row.values()}
    rules = [target for target in targets if target not in states]
    return sorted(rules, key=lambda rule: (_is_unit(rule), rule.origin.name, rule.order, str(rule)))


def _is_unit(rule: Rule) -> bool:
    return _described(rule)[1:] == (1, "", None)


def _described(rule: Rule) -> tuple[str, int, str, tuple[int, ...] | None]:
    """Origin, length, builder, and which of the symbols' values the builder gets (-1: None).

    A builder ``""`` hands on its only value; None for all values in order.
    """
    picks: list[int] = []
    symbols = iter(enumerate(rule.expansion))
    for absent in rule.options.empty_indices or [False] * len(rule.expansion):
        if absent:
            picks.append(-1)
            continue
        i, symbol = next(symbols)
        if _has_value(symbol, rule.options.keep_all_tokens):
            picks.append(i)
    size = len(rule.expansion)
    builder = "" if rule.alias in (None, "same") else rule.alias
    if not builder and len(picks) > 1:
        raise ValueError(f"{rule}: needs a builder")
    # Where the one value is not used, handing it on does no harm.
    all_in_order = picks == list(range(size)) or (size == 1 and not builder)
    return rule.origin.name, size, builder, None if all_in_order else tuple(picks)


def _has_value(symbol: Symbol, keep: bool) -> bool:
    if symbol.name.startswith("_") and not symbol.name.startswith("__ANON"):
        return False
    return keep or not getattr(symbol, "filter_out", False)


def _roles(state: Any) -> tuple[str, ...]:
    """The rules in which an identifier may stand next; `explain` names it for each of them."""
    return tuple(
        sorted(
            {
                str(item.rule.origin.name)
                for item in state
                if not item.is_satisfied and item.next.name in ("IDENT", "key")
            }
        )
    )


def _marshalled(value: Any) -> bytes:
    """``value`` as bytes, every string in it a plain interned `str`: marshal refers back to those."""
    memo: dict[int, Any] = {}

    def copy(item: Any) -> Any:
        if isinstance(item, str):
            # Lark's names are a subclass of str, which marshal refuses.
            return sys.intern("".join(item))
        if id(item) in memo:
            return memo[id(item)]
        if isinstance(item, dict):
            result: Any = {copy(key): copy(entry) for key, entry in item.items()}
        elif isinstance(item, tuple):
            result = tuple(copy(entry) for entry in item)
        elif isinstance(item, list):
            result = [copy(entry) for entry in item]
        else:
            result = item
        memo[id(item)] = result
        return result

    return marshal.dumps(copy(value))
