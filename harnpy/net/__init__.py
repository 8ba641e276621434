"""HTTP for programs: cookies, forms, requests and their answers, events, routes.

Knows nothing of the language. Here are formats, options and rules; connections are `harnpy.world`'s, the one
door to the outside.
"""
