"""A Harn file as an MCP server: its functions as tools, its sessions as resources. Spec: 09 §11.4.

`results` and `tools` are plain data in the protocol's words; `server` and the transports `stdio` and `http`
stand on the official SDK (the extra `mcp`), which nothing else here imports.
"""
