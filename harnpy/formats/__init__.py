"""Text and bytes that know no values of the language; reading dicts against one table of options.

What formats must know of a language's values is passed in (`templates.expressions.Operations`,
`schema_checks.SchemaValues`). Imports only `faults`, `project` and `world`; what is on the start-up path or
on that of the syntax (`display`, `suggestions`, `visible`, `secrets.forms`) imports nothing heavy.
"""
