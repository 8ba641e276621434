"""The HTTP server of a program: routes, hooks, messages, TLS, events sent to browsers. Spec: 04 §21.5.

Pure: what a request is answered, not how it arrives. `asgi` joins it to the world's listening, where each
request is handled by a task of the program's.
"""
