"""What a program lets itself reach. Spec: 04 §21.4."""

from __future__ import annotations

from harnpy.builtins.bridge.live_http import egress_of
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("egress_policy(config: dict) -> dict", family="policy")
def egress_policy(vm: Vm, config: Value = None) -> dict[str, Value]:
    """Restrict what the run may reach: HTTP, events, sockets, models, MCP over HTTP. Once per run.

    Rules are hosts, `*.suffix`, addresses, ranges and URLs, each with a `:port` or not. Deny beats allow
    beats `default`. A blocked request throws `{type: "EgressBlocked", category: "egress_blocked", …}`.

    Example:
        egress_policy({allow: ["api.example.com:443"], deny: ["10.0.0.0/8"]}).default  // "deny"
    """
    from harnpy.net.egress_policies import read_config
    from harnpy.world.net.rules import STDLIB

    egress = egress_of(vm)
    policy = read_config("egress_policy", config, STDLIB)
    egress.configure(policy)
    return {
        "configured": True,
        "source": policy.source,
        "default": policy.default,
        "allow": policy.allow.texts,
        "deny": policy.deny.texts,
    }
