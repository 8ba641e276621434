"""Children of a session: runs of agents in sessions of their own, told of in the parent's log.

`facts` are the shapes of what that log says, `child_runs` reads it. Spec: 10 §A1.15, §C10.
"""
