"""Requests of programs over HTTP: options, retries, mocks, sessions, streams. Spec: 04 §21.1–21.3.

`request` makes a request of what a program asks for. `calls` sends it, again where `retries` says so, unless
`mocks` has a response; `sessions` and `streams` are what stays open.
"""
