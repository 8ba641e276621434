"""Encodings, hashes, keys, tokens and signed URLs: bytes and texts in, bytes and texts out.

Knows nothing of the language, and asks nothing of the world: the bytes of a new key are given to it.
`cryptography` is imported by what needs keys, on first use.
"""
