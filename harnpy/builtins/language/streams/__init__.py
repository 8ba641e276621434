"""Standard input, output and error, and what is written to them."""
