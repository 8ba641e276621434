"""harnpy's stores and agents behind the interfaces of other frameworks. Spec: 10 §C20.

In `openai_agents`, `pydantic_ai`, `claude_agent_sdk` and `langgraph` a framework keeps its conversations;
`ag_ui` and `ai_sdk` are ASGI applications for front ends. Each but the last needs its extra: importing the
module without it raises an ImportError that names it. The others need none: `threads` and `checkpoints` read
what LangGraph keeps; `conversations` lists, finds and copies it together with sessions.
"""
