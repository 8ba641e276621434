"""One model call, from a dict of options to a reply: requests, providers, results, usage and cost.

The room knows no sessions and no language. `call.Models` is the way in: it holds the providers and what
the calls of one program add up to. Spec: 07 §1–2.
"""
