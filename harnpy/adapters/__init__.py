"""harnpy's stores behind the interfaces of other frameworks: `langgraph`, `openai_agents`. Spec: 10 §C20.

Each of the two needs its extra: importing the module without it raises an ImportError that names it. The
others need none: `threads` and `checkpoints` read what LangGraph keeps; `conversations` lists, finds and
copies it together with sessions.
"""
