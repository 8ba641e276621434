"""The portal: pages for people over `Service`, at `/`. Spec: 11 §2; docs/portal.md.

The server makes every page, and every piece of one that a script puts into it later; scripts only ask for
them. `shell` is the frame of all pages, `transcript` what was said, `sessions` and `runs` the pages,
`actions` what forms do, `live` what an open page is sent, `routes` where everything is.
"""

from harnpy.serve.portal.routes import routes as routes

__all__ = ["routes"]
