"""Agently's names: `Session`, and an `Agent` that holds some. Spec: 10 §A2, §B2.

Each method that changes something returns its object, and has a form for asyncio, ``async_…``; there a
handler that is async runs on the caller's loop.
"""

from harnpy.session.faces.agently.agent import Agent
from harnpy.session.faces.agently.session import Session

__all__ = ["Agent", "Session"]
