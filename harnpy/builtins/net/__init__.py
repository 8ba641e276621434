"""Cookies, forms, HTTP, events, sockets, servers: over `harnpy.net` and the world's connections."""
