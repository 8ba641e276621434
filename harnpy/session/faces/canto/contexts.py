"""What the code around an append adds to its events, as blocks. Spec: 10 §A1.4 step 2."""

from harnpy.session.drafting.ambient import current_metadata as metadata_from_context
from harnpy.session.drafting.ambient import current_turn as turn_id_from_context
from harnpy.session.drafting.ambient import ensure_turn as ensure_turn_id
from harnpy.session.drafting.ambient import metadata as with_metadata
from harnpy.session.drafting.ambient import turn as with_turn_id

__all__ = [
    "ensure_turn_id",
    "metadata_from_context",
    "turn_id_from_context",
    "with_metadata",
    "with_turn_id",
]
