"""What the verbs of `std/session` share: one runtime for each store, in the tasks of one program.

`verbs` reads arguments and tells errors; `service` is what belongs to a program. Spec: 10 §C9.
"""
