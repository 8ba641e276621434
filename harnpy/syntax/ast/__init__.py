"""The typed syntax tree: one small immutable class a construct, all of them under this name. Spec: 01 §6.

Plain slotted classes, no dataclasses: this package is on the start-up path of a cold run.
"""

from harnpy.syntax.ast.blocks import *  # noqa: F403
from harnpy.syntax.ast.declarations import *  # noqa: F403
from harnpy.syntax.ast.expressions import *  # noqa: F403
from harnpy.syntax.ast.node import *  # noqa: F403
from harnpy.syntax.ast.patterns import *  # noqa: F403
from harnpy.syntax.ast.statements import *  # noqa: F403
from harnpy.syntax.ast.types import *  # noqa: F403
