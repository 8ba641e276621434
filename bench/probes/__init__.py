"""One conversation and one stream, for many libraries: what `bench/dialects.py` asks each of them."""
