"""The client of the Model Context Protocol, over the official SDK. Spec: 07 §15.1.

`Client` is a connection to one server, `Servers` the declared ones of a program. The SDK's dispatcher matches
requests with their answers, and its tables say what versions of the protocol there are and which headers a
request has; a transport, stdio or HTTP, moves the messages. Everything else is what the specification wants
and the SDK's own client does not do: results as they were sent, its messages, egress policies.

Knows no VM and no agents. The SDK is the extra `harnpy[mcp]`, imported when the first server is connected.
"""
