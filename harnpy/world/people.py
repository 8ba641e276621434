"""The former place of `People`, until 0.3: it is in `harnpy.world.host`."""

from warnings import warn

from harnpy.world.host import People as People

warn(
    "harnpy.world.people is deprecated: use harnpy.world.host; it goes with 0.3",
    DeprecationWarning,
    stacklevel=2,
)
