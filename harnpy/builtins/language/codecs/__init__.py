"""Bytes, encodings, hashes, keys, tokens, compression, archives: over `harnpy.crypto`, `harnpy.archives`."""
