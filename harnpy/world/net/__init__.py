"""HTTP clients: what every request and every connection passes before it leaves. Loaded on first use.

`egress` decides what may be reached, `connecting` opens the connections, `client` puts a client of httpx2
behind both.
"""
