; Written by editors/grammars.py.

(identifier) @variable
(type_identifier) @type
(property_identifier) @property
(parameter name: (identifier) @variable.parameter)
(call function: (identifier) @function)
(method_call name: (property_identifier) @function.method)
[
  (function name: (identifier) @function)
  (method_signature name: (identifier) @function)
  (tool name: (identifier) @function)
  (skill name: (identifier) @function)
  (pipeline name: (identifier) @function)
  (override name: (identifier) @function)
  (eval_pack name: (identifier) @function)
]
(skill_field name: (identifier) @property)
(eval_field name: (identifier) @property)
(struct_field name: (identifier) @property)
(variant name: (identifier) @constructor)
(attribute "@" @attribute name: (identifier) @attribute)

(integer) @number
(float) @number
(duration) @number
(string) @string
(raw_string) @string
(escape_sequence) @string.escape
(interpolation ["${" "}"] @punctuation.special) @embedded
(shebang) @comment
(line_comment) @comment
(block_comment) @comment
(ellipsis) @operator

[
  "!" "!=" "%" "%=" "&&" "*" "**" "*=" "+" "+=" "-" "-=" "->" "/" "/=" "<" "<=" "=" "==" ">" ">="
  "?" "?." "??" "|" "|>" "||"
] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," "." ":" ";"] @punctuation.delimiter

[
  (false)
  (nil)
  (true)
] @constant.builtin

[
  (break)
  "catch"
  (continue)
  "deadline"
  "defer"
  "else"
  "emit"
  "finally"
  "for"
  "guard"
  "if"
  "match"
  "mutex"
  "parallel"
  "require"
  "retry"
  "return"
  "select"
  "spawn"
  "throw"
  "try"
  "while"
  "yield"
] @keyword

[
  "from"
  "import"
] @keyword

[
  "exclusive"
  "in"
  "to"
] @keyword.operator

[
  "extends"
  "override"
  "pub"
] @keyword

[
  "enum"
  "eval_pack"
  "fn"
  "impl"
  "interface"
  "let"
  "pipeline"
  "skill"
  "struct"
  "tool"
  "type"
  "var"
] @keyword

[
  "as"
  "default"
  "description"
  "each"
  "gen"
  "not in"
  "out"
  "settle"
  "stream"
  "summarize"
  "timeout"
  "where"
  "with"
] @keyword
