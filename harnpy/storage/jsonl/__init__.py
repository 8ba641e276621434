"""The store that is a directory of JSON lines: one log a stream, readable with any tool.

`layout` defines how bytes lie on disk, `log` reads logs and finds them all, `writing` writes them,
`file_leases` keeps leases, `store` is the contract's face. Spec: 10 §C6.1.
"""
