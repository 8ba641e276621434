"""Harn files as servers: programs that stay loaded and are called from outside, many at once. Spec: 09 §11.4.

`program` is the file, `calls` one call of it; `mcp/` offers it to MCP clients. Nothing here is imported by a
program that serves nothing.
"""
