"""Eval packs. Spec: 08 §8.7."""

from __future__ import annotations

from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.workflow.evals.pack_manifest import normalised
from harnpy.workflow.evals.run_pack import run_pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm
    from harnpy.workflow.evals.pack_types import EvalPack


@builtin("eval_pack_manifest(manifest: dict) -> dict", family="records")
def eval_pack_manifest(vm: Vm, manifest: Value = None) -> EvalPack:
    """The normal form of an eval pack's manifest: what an `eval_pack` declaration binds.

    Example:
        eval_pack_manifest({id: "basics"}).id  // "basics"
    """
    return normalised(_given("eval_pack_manifest", manifest), sessions_of(vm).world)


@builtin("eval_pack_run(manifest: dict) -> dict", family="records")
def eval_pack_run(vm: Vm, manifest: Value = None) -> Dict:
    """Judge the cases of an eval pack: a report with a verdict, failures and warnings for each.

    Example:
        let pack = {fixtures: [{id: "first", inline: {id: "run_1"}}], cases: [{run: "first"}]}
        eval_pack_run(pack).pass  // true
    """
    world, given = sessions_of(vm).world, _given("eval_pack_run", manifest)
    return run_pack(normalised(callables_within(vm, given), world), world)


def _given(caller: str, manifest: Value) -> Value:
    if manifest is None:
        raise RuntimeFault(f"{caller}: missing manifest payload")
    return manifest
