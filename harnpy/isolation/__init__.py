"""A Vm in a process of its own: the embedder's side, the child's side, and what they say to each other.

`harnpy.isolated` is `vm.IsolatedVm`. The child (`child`) is an ordinary Vm that does what it is told over a
socket and asks back for what only the embedder has. Both speak `protocol`; `errors` and `values` cross it as
plain data. `process` starts and ends the process and knows why it ended. Spec: 09 §16.3.
"""
