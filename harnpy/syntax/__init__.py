"""Text to tree: lexing, parsing, diagnostics, canonical text. Knows no values; imports nothing of harnpy.

`parser.parse` and `parser.parse_cached` give the tree or raise `errors.SyntaxFault`;
`structure.check_structure` lists what the tree breaks as `errors.CompileFault`;
`printer.print_program` is the way back. Modules are imported by name: a run that finds its program in
the cache pays for none of them.
"""
