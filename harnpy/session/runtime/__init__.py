"""The session runtime: sessions on a store, changed by one action after the other. Spec: 10 §C7.

`SessionRuntime` is its face; `pipeline` has the ten steps, `txn` what an action sees, `live` the objects in
memory, `lanes` and `holding` who may write when.
"""
