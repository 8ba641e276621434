"""Running a workflow. Spec: 08 §7."""

from __future__ import annotations

from harnpy.builtins.bridge.agent_functions import graph_with_python_functions
from harnpy.builtins.bridge.agent_runtime import runtime_of
from harnpy.builtins.bridge.callables import callables_within
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.values.objects import display
from harnpy.workflow.execution.execute import execute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin(
    "workflow_execute(task: string, graph: dict, artifacts?: list, options?: dict) -> dict",
    family="workflows",
    counted=True,
)
def workflow_execute(
    vm: Vm, task: Value = None, graph: Value = None, artifacts: Value = None, options: Value = None
) -> Dict:
    """Run a graph's nodes, from its entry along its edges: `{status, run, artifacts, transcript, path}`.

    The status is `completed`, or `paused` if `max_steps` were not enough; `resume_path` continues such a run.
    A stage that fails follows the edges of its branch; it doesn't end the run.

    Example:
        llm_mock({text: "Forks are cheap now."})
        let flow = workflow_graph({entry: "draft", nodes: {draft: {system: "Be brief."}}})
        workflow_execute("Announce it", flow, nil, {provider: "mock"}).status  // "completed"
    """
    check_options(vm, "workflow_execute", options)
    runtime = runtime_of(vm)
    given = runtime.models.options(callables_within(vm, options))
    text = "" if task is None else display(task)
    return execute(runtime, text, graph_with_python_functions(vm, graph), artifacts, given)
