"""The sessions of one VM, with all the verbs. Spec: 08 §1."""

from __future__ import annotations

from harnpy.session.verbs.clients import LiveClients
from harnpy.session.verbs.compaction import Compacting
from harnpy.session.verbs.loop_access import Driving
from harnpy.session.verbs.scratchpad import Scratchpads
from harnpy.session.verbs.seeding import Seeding
from harnpy.session.verbs.workspace import Workspaces


class SessionStore(LiveClients, Workspaces, Scratchpads, Compacting, Seeding, Driving):
    """At most ``cap`` sessions, the least recently used first.

    Each `agent_session_*` builtin is the method of the same name without the prefix, and an error reads as
    the builtin's. Unknown ids raise `SessionNotFound`, wrong arguments `InvalidArgument`, compactions that
    can't be carried out `ResizeError`. A call that raises has changed nothing.
    """
