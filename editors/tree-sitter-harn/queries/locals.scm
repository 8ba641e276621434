[
  (arm)
  (block)
  (catch)
  (closure)
  (for)
  (function)
  (function_expression)
  (pipeline)
  (program)
  (tool)
] @local.scope

(function name: (identifier) @local.definition.function)
(tool name: (identifier) @local.definition.function)
(let name: (identifier) @local.definition.var)
(var name: (identifier) @local.definition.var)
(for pattern: (identifier) @local.definition.var)
(pair_pattern (identifier) @local.definition.var)
(dict_pattern_entry key: (identifier) @local.definition.var !name)
(dict_pattern_entry name: (identifier) @local.definition.var)
(list_pattern_item name: (identifier) @local.definition.var)
(rest_pattern name: (identifier) @local.definition.var)
(catch name: (identifier) @local.definition.var)
(parameter name: (identifier) @local.definition.parameter)
(parameters (identifier) @local.definition.parameter)
(import name: (identifier) @local.definition.import)

(identifier) @local.reference
