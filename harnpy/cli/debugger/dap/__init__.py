"""The debugger for editors: the Debug Adapter Protocol over stdin and stdout. Spec: 09 §15.6.

`wire` sends and receives messages, `messages` says what requests carry, `inspection` answers questions about
a stopped program, `adapter` does the rest.
"""
