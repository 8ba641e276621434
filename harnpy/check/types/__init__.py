"""The algebra of types. `Types` answers every question about the types of one file.

A type is a type node of the syntax; none is None. Spec: 03 §3, §4, §7, §8.3, §13.
"""

from harnpy.check.types.algebra import Types
from harnpy.check.types.declared import Declared

__all__ = ["Declared", "Types"]
