"""The models of a Vm. Spec: 07 §1."""

from __future__ import annotations

from functools import partial

from harnpy.builtins import settings_of
from harnpy.builtins.bridge.agent_tasks import AgentTasks
from harnpy.builtins.bridge.live_http import model_http_of
from harnpy.builtins.language.schemas import HarnValues
from harnpy.llm.call import Models
from harnpy.llm.call_options import Caps
from harnpy.vm.run.spans import recorder
from harnpy.world.effects import ENVIRONMENT, MODEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.limits import Meter
    from harnpy.vm.vm import Vm


def models_of(vm: Vm) -> Models:
    """Return the Vm's models, which act on its world."""
    return vm.state(Models, lambda: _new_models(vm))


def _new_models(vm: Vm) -> Models:
    world, settings, meter = vm.unguarded, settings_of(vm), vm.meter
    models = Models(
        world,
        AgentTasks(vm),
        values=HarnValues(vm),
        directory=lambda: vm.source_dir or world.files.cwd(),
        tracing=settings.trace_llm,
        provided=settings.providers,
        admission=None if meter is None else partial(meter.spend, "model_calls"),
        permit=lambda provider: vm.guard.require(MODEL, provider),
        caps=None if meter is None else _caps(meter),
        spans=partial(recorder, vm),
        http=model_http_of(vm),
        program=(partial(_variable, vm), vm.world.files.read_text),
    )
    vm.tasks.at_end(models.connections.aclose)
    for prepare in settings.on_models:
        prepare(models)
    return models


def _variable(vm: Vm, name: str) -> str | None:
    """Return the value of a variable that the program may read."""
    return None if vm.guard.refuses(ENVIRONMENT, name) else vm.unguarded.environment.get(name)


def _caps(meter: Meter) -> Caps:
    """Return the most bytes that the embedder lets a response have."""
    most = meter.most("response_bytes")
    return Caps() if most is None else Caps(bytes=most, on_bytes=partial(meter.excess, "response_bytes"))
