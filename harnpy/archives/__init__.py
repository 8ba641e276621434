"""Compressed data and archives: bytes in, bytes out; nothing here touches a file.

Compressors and decompressors take and yield pieces, so that whoever calls them decides how much is too much
and may stop in the middle. What comes from outside is taken for hostile: sizes are looked at before memory is
taken, names that lead out of the archive and what is no file are refused.
"""
