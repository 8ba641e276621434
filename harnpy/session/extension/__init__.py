"""An agent's hold on sessions: which one is active, what a request shows of it, what it records.

Spec: 10 §A2.5, §A2.6, §C9.
"""

from harnpy.session.extension.extension import SessionExtension
from harnpy.session.extension.request_prompt import RequestPrompt

__all__ = ["RequestPrompt", "SessionExtension"]
