[
  (arguments)
  (block)
  (closure)
  (dict)
  (enum)
  (eval_pack)
  (impl)
  (interface)
  (list)
  (match)
  (parameters)
  (select)
  (shape_type)
  (skill)
  (struct)
  (struct_literal)
] @indent.begin

["}" "]" ")"] @indent.branch @indent.end

(line_comment) @indent.ignore
(block_comment) @indent.ignore
