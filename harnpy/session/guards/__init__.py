"""What stands between an agent and what it wants: a budget, approvals of tools, questions to people.

They plug into `SessionRuntime.send`, and work on any session. Spec: 10 §A1.17, §A1.18, §C7.
"""
