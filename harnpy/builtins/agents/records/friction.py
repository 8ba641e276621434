"""Friction events and the context packs that they suggest. Spec: 08 §8.8."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.text.json.reader import parse_json
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.workflow.friction import context_pack as packs
from harnpy.workflow.friction import friction_event as friction
from harnpy.workflow.friction import friction_fixture as fixtures
from harnpy.workflow.friction.friction_log import FrictionLog
from harnpy.workflow.friction.suggestions import suggestions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="records")


@builtin("friction_event(payload: dict) -> dict")
def friction_event(vm: Vm, payload: Value = None) -> Dict:
    """The normal form of a friction event: an obstacle, described without secrets.

    Example:
        friction_event({kind: "missing_context", summary: "Which shop?"}).kind  // "missing_context"
    """
    return friction.normalised(_given("friction_event", payload), sessions_of(vm).world, top_level_keys=True)


@builtin("friction_record(event: dict, options?: dict) -> dict")
def friction_record(vm: Vm, event: Value = None, options: Value = None) -> Dict:
    """Keep a friction event, in memory and in the file `log_path`, if any: `{recorded, sink, event}`.

    Example:
        friction_record({kind: "missing_context", summary: "Which shop?"}).recorded  // true
    """
    return vm.state(FrictionLog).record(_given("friction_record", event), options, sessions_of(vm).world)


@builtin("friction_events() -> list")
def friction_events(vm: Vm) -> list[Dict]:
    """The friction events recorded so far, in order.

    Example:
        friction_clear()
        friction_record({kind: "missing_context", summary: "Which shop?"})
        friction_events().count()  // 1
    """
    return list(vm.state(FrictionLog).events)


@builtin("friction_clear() -> nil")
def friction_clear(vm: Vm) -> None:
    """Forget the recorded friction events.

    Example:
        friction_clear()
        friction_events()  // []
    """
    vm.state(FrictionLog).events.clear()


@builtin("context_pack_manifest(manifest: dict) -> dict")
def context_pack_manifest(vm: Vm, manifest: Value = None) -> Dict:
    """The normal form of a context pack's manifest.

    Example:
        context_pack_manifest({id: "bolts", name: "Bolts", owner: "ann"}).name  // "Bolts"
    """
    return packs.normalised(_given("context_pack_manifest", manifest))


@builtin("context_pack_manifest_parse(text: string) -> dict")
def context_pack_manifest_parse(vm: Vm, text: str) -> Dict:
    r"""The normal form of the manifest in a text: JSON if it starts with `{`, else TOML.

    Example:
        context_pack_manifest_parse("id = \"bolts\"\nname = \"Bolts\"\nowner = \"ann\"\n").id  // "bolts"
    """
    return packs.parsed(text, parse_json)


@builtin("context_pack_suggestions(events?: any, options?: dict) -> list")
def context_pack_suggestions(vm: Vm, events: Value = None, options: Value = None) -> list[Dict]:
    """The context packs that friction events call for: the recorded ones, or a list, or `{events}`.

    Example:
        context_pack_suggestions([])  // []
    """
    world = sessions_of(vm).world
    found = vm.state(FrictionLog).events if events is None else friction.read_events(events, world)
    return suggestions(found, options, world)


@builtin("friction_eval_fixture(fixture: dict) -> dict")
def friction_eval_fixture(vm: Vm, fixture: Value = None) -> Dict:
    """Whether `{events, options?, expected_suggestions?}` suggests what is expected: a report.

    Example:
        friction_eval_fixture({events: []}).pass  // true
    """
    return fixtures.evaluate(_given("friction_eval_fixture", fixture), sessions_of(vm).world)


def _given(caller: str, payload: Value) -> Value:
    if payload is None:
        raise RuntimeFault(f"{caller}: missing payload")
    return payload
