"""The former place of the faces, until 0.3: they are `harnpy.faces`.

The modules are named, not imported: a session knows nothing of the faces above it.
"""

import sys
from importlib import import_module
from warnings import warn

warn(
    "harnpy.session.faces is deprecated: use harnpy.faces; it goes with 0.3", DeprecationWarning, stacklevel=2
)

for _name in ("agently", "canto", "cognesy"):
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = import_module(f"harnpy.faces.{_name}")
