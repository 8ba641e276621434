/**
 * Harn for tree-sitter.
 *
 * The language is grammar/harn.lark's, and the names of nodes are those of harnpy/syntax/ast.py where one
 * would know them. Line breaks, strings, nested comments, contextual words and what `{ ? <` mean are
 * decided by looking ahead, in src/scanner.c, by the rules of harnpy/syntax/layout.py.
 */
/// <reference types="tree-sitter-cli/dsl" />

const PREC = {
  pipe: 1,
  range: 2,
  ternary: 3,
  or: 4,
  and: 5,
  equality: 6,
  comparison: 7,
  additive: 8,
  coalesce: 9,
  product: 10,
  power: 11,
  unary: 12,
  postfix: 13,
  element: -1,
};

module.exports = grammar({
  name: "harn",

  word: ($) => $.identifier,

  // The order is that of `enum TokenType` in src/scanner.c.
  externals: ($) => [
    $._line_break,
    $.block_comment,
    $._string_text,
    $._triple_text,
    $._struct_open,
    $._closure_open,
    $._body_open,
    $._ternary_mark,
    $._index_mark,
    $._try_mark,
    $._gen,
    $._each,
    $._settle,
    $._with,
    $._as,
    $._stream,
    $._where,
    $._out,
    $._description,
    $._summarize,
    $._timeout,
    $._default,
    $._not_in,
    $._recovering,
  ],

  extras: ($) => [/[ \t\r\n]/, /\\\n/, $.line_comment, $.block_comment],

  supertypes: ($) => [$._expression, $._statement, $._type],

  inline: ($) => [$._separator, $._break],

  conflicts: ($) => [[$._expression, $._generic_call], [$._expression, $._empty_struct]],

  rules: {
    program: ($) => seq(optional($.shebang), optional($._statements)),

    shebang: () => token(prec(1, /#![^\n]*/)),
    line_comment: () => token(/\/\/[^\n]*/),

    _break: ($) => choice(";", $._line_break),
    _separator: ($) => choice(",", $._line_break),

    // Blocks

    block: ($) => seq("{", optional($._statements), "}"),
    _statements: ($) => seq(sep1($._statement, $._break), optional(";")),
    _braced: ($) => seq(optional($._line_break), field("body", $.block)),
    _enter: ($) => seq(optional($._line_break), "{"),

    // Imports and attributes

    import: ($) => seq(repeat($._attribute_line), optional("pub"), "import", $._import_tail),
    _import_tail: ($) =>
      choice(
        field("path", $.string),
        seq("{", list($, field("name", $.identifier)), "}", optional($._line_break), "from", field("path", $.string)),
      ),

    _attribute_line: ($) => seq($.attribute, optional($._line_break)),
    attribute: ($) =>
      prec.right(seq("@", field("name", $.identifier), optional(seq("(", commas($.attribute_argument), ")")))),
    attribute_argument: ($) => seq(optional(seq(field("name", $.identifier), ":")), $._attribute_value),
    _attribute_value: ($) =>
      choice(
        $.string,
        $.raw_string,
        $.integer,
        $.float,
        alias($._negative_number, $.unary),
        $.true,
        $.false,
        $.nil,
        $.identifier,
        alias($._attribute_list, $.list),
      ),
    _negative_number: ($) => seq("-", choice($.integer, $.float)),
    _attribute_list: ($) => seq("[", commas($._attribute_value), "]"),

    // Declarations

    pipeline: ($) =>
      seq(
        repeat($._attribute_line),
        optional("pub"),
        "pipeline",
        field("name", $.identifier),
        field("parameters", alias($._bare_parameters, $.parameters)),
        optional($._returns),
        optional(seq("extends", field("parent", $.identifier))),
        $._braced,
      ),
    override: ($) =>
      seq(
        repeat($._attribute_line),
        "override",
        field("name", $.identifier),
        field("parameters", alias($._bare_parameters, $.parameters)),
        $._braced,
      ),
    _bare_parameters: ($) => seq("(", list($, $.identifier), ")"),

    function: ($) =>
      seq(
        repeat($._attribute_line),
        optional("pub"),
        optional(alias($._gen, "gen")),
        "fn",
        field("name", $.identifier),
        optional($.type_parameters),
        field("parameters", $.parameters),
        optional($._returns),
        optional($.where),
        $._braced,
      ),
    _returns: ($) => seq("->", field("returns", $._type)),
    where: ($) => seq(alias($._where, "where"), sep1($.bound, ",")),
    bound: ($) => seq(field("name", $.identifier), ":", field("interface", alias($.identifier, $.type_identifier))),

    tool: ($) =>
      seq(
        repeat($._attribute_line),
        optional("pub"),
        "tool",
        field("name", $.identifier),
        field("parameters", $.parameters),
        optional($._returns),
        optional($._line_break),
        field("body", alias($._tool_body, $.block)),
      ),
    _tool_body: ($) =>
      seq(
        "{",
        optional(choice(seq($.description, optional(choice(seq($._break, $._statements), ";"))), $._statements)),
        "}",
      ),
    description: ($) => seq(alias($._description, "description"), field("text", $.string)),

    skill: ($) =>
      seq(
        repeat($._attribute_line),
        optional("pub"),
        "skill",
        field("name", $.identifier),
        $._enter,
        optional(seq(sep1($.skill_field, $._break), optional(";"))),
        "}",
      ),
    skill_field: ($) => seq(field("name", $.identifier), field("value", $._expression)),

    eval_pack: ($) =>
      seq(
        repeat($._attribute_line),
        optional("pub"),
        "eval_pack",
        choice(seq(field("name", $.identifier), optional(field("id", $.string))), field("id", $.string)),
        $._enter,
        optional(seq(sep1(choice($._statement, $.eval_field, $.summarize), $._break), optional(";"))),
        "}",
      ),
    eval_field: ($) => seq(field("name", $.identifier), ":", field("value", $._expression)),
    summarize: ($) => seq(alias($._summarize, "summarize"), $._braced),

    enum: ($) =>
      seq(
        repeat($._attribute_line),
        optional("pub"),
        "enum",
        field("name", alias($.identifier, $.type_identifier)),
        optional($.type_parameters),
        $._enter,
        list($, $.variant),
        "}",
      ),
    variant: ($) => seq(field("name", $.identifier), optional(field("parameters", $.parameters))),

    struct: ($) =>
      seq(
        repeat($._attribute_line),
        optional("pub"),
        "struct",
        field("name", alias($.identifier, $.type_identifier)),
        optional($.type_parameters),
        $._enter,
        list($, $.struct_field),
        "}",
      ),
    struct_field: ($) => seq(field("name", $.identifier), optional($._optional_mark), optional($._annotation)),
    _optional_mark: ($) => choice(alias($._ternary_mark, "?"), alias($._index_mark, "?"), alias($._try_mark, "?")),
    _annotation: ($) => seq(":", field("type", $._type)),

    interface: ($) =>
      seq(
        repeat($._attribute_line),
        "interface",
        field("name", alias($.identifier, $.type_identifier)),
        optional($.type_parameters),
        $._enter,
        optional(sep1(choice($.associated_type, $.method_signature), optional($._line_break))),
        "}",
      ),
    associated_type: ($) =>
      seq("type", field("name", alias($.identifier, $.type_identifier)), optional(seq("=", field("value", $._type)))),
    method_signature: ($) =>
      seq(
        "fn",
        field("name", $.identifier),
        optional($.type_parameters),
        field("parameters", $.parameters),
        optional($._returns),
      ),

    impl: ($) =>
      seq(
        repeat($._attribute_line),
        "impl",
        field("name", alias($.identifier, $.type_identifier)),
        $._enter,
        optional(sep1(alias($._method, $.function), optional($._line_break))),
        "}",
      ),
    _method: ($) =>
      seq(
        optional("pub"),
        "fn",
        field("name", $.identifier),
        optional($.type_parameters),
        field("parameters", $.parameters),
        optional($._returns),
        optional($.where),
        $._braced,
      ),

    type_declaration: ($) =>
      seq(
        repeat($._attribute_line),
        "type",
        field("name", alias($.identifier, $.type_identifier)),
        optional($.type_parameters),
        optional($._line_break),
        "=",
        field("value", $._type),
      ),
    type_parameters: ($) => seq("<", list($, $.type_parameter), ">"),
    type_parameter: ($) =>
      seq(optional(choice("in", alias($._out, "out"))), field("name", alias($.identifier, $.type_identifier))),

    parameters: ($) => seq("(", list($, choice($.parameter, $.rest_parameter)), ")"),
    parameter: ($) => seq(field("name", $.identifier), optional($._annotation), optional($._default_value)),
    rest_parameter: ($) => seq($.ellipsis, $.parameter),
    _default_value: ($) => seq("=", field("default", $._expression)),
    ellipsis: () => token(/\.[ \t\r]*\.[ \t\r]*\./),

    // Statements

    _statement: ($) =>
      choice(
        $._expression,
        $.assignment,
        $.function,
        $.tool,
        $.skill,
        $.eval_pack,
        $.enum,
        $.struct,
        $.interface,
        $.impl,
        $.type_declaration,
        $.override,
        $.import,
        $.pipeline,
        $.let,
        $.var,
        $.for,
        $.while,
        $.return,
        $.throw,
        $.yield,
        $.emit,
        $.break,
        $.continue,
        $.guard,
        $.require,
        $.defer,
        $.mutex,
        $.select,
      ),

    assignment: ($) =>
      seq(field("target", $._expression), choice("=", "+=", "-=", "*=", "/=", "%="), field("value", $._expression)),
    let: ($) => seq("let", $._binding),
    var: ($) => seq("var", $._binding),
    _binding: ($) =>
      seq(
        choice(seq(field("name", $.identifier), optional($._annotation)), field("pattern", $._destructuring)),
        optional($._line_break),
        "=",
        field("value", $._expression),
      ),
    _destructuring: ($) => choice($.dict_pattern, $.list_pattern),
    dict_pattern: ($) => seq("{", list($, choice($.dict_pattern_entry, $.rest_pattern)), "}"),
    dict_pattern_entry: ($) =>
      seq(field("key", $.identifier), optional(seq(":", field("name", $.identifier))), optional($._default_value)),
    list_pattern: ($) => seq("[", list($, choice($.list_pattern_item, $.rest_pattern)), "]"),
    list_pattern_item: ($) => seq(field("name", $.identifier), optional($._default_value)),
    rest_pattern: ($) => seq($.ellipsis, field("name", $.identifier)),

    for: ($) =>
      seq(
        "for",
        field("pattern", choice($.identifier, $._destructuring, $.pair_pattern)),
        optional($._line_break),
        "in",
        field("items", $._expression),
        $._braced,
      ),
    pair_pattern: ($) => seq("(", $.identifier, ",", $.identifier, ")"),
    while: ($) => seq("while", field("condition", $._expression), $._braced),
    return: ($) => prec.right(seq("return", optional($._expression))),
    throw: ($) => seq("throw", $._expression),
    yield: ($) => prec.right(seq("yield", optional($._expression))),
    emit: ($) => seq("emit", $._expression),
    break: () => "break",
    continue: () => "continue",
    guard: ($) => seq("guard", field("condition", $._expression), "else", $._braced),
    require: ($) => seq("require", field("condition", $._expression), optional(seq(",", field("message", $._expression)))),
    defer: ($) => seq("defer", $._braced),
    mutex: ($) => seq("mutex", $._braced),
    select: ($) =>
      seq(
        "select",
        $._enter,
        optional(sep1(choice($.receive_case, $.timeout_case, $.default_case), optional($._line_break))),
        "}",
      ),
    receive_case: ($) => seq(field("name", $.identifier), "from", field("channel", $._expression), $._braced),
    timeout_case: ($) => seq(alias($._timeout, "timeout"), field("time", $._expression), $._braced),
    default_case: ($) => seq(alias($._default, "default"), $._braced),

    // Expressions, loosest first

    _expression: ($) =>
      choice(
        $.spread,
        $.binary,
        $.range,
        $.ternary,
        $.unary,
        $.try_star,
        $.member,
        $.method_call,
        $.index,
        $.slice,
        $.propagate,
        $.string,
        $.raw_string,
        $.integer,
        $.float,
        $.duration,
        $.true,
        $.false,
        $.nil,
        $.identifier,
        $.call,
        alias($._generic_call, $.call),
        $.struct_literal,
        alias($._empty_struct, $.struct_literal),
        $.parenthesized,
        $.list,
        $.dict,
        $.closure,
        $.function_expression,
        $.if,
        $.match,
        $.try,
        $.retry,
        $.deadline,
        $.spawn,
        $.parallel,
      ),

    spread: ($) => seq($.ellipsis, $._expression),
    binary: ($) => {
      /** @type {[number, any, "left" | "right"][]} */
      const levels = [
        [PREC.pipe, "|>", "left"],
        [PREC.or, "||", "left"],
        [PREC.and, "&&", "left"],
        [PREC.equality, choice("==", "!="), "left"],
        [PREC.comparison, choice("<", ">", "<=", ">=", "in", alias($._not_in, "not in")), "left"],
        [PREC.additive, choice("+", "-"), "left"],
        [PREC.coalesce, "??", "left"],
        [PREC.product, choice("*", "/", "%"), "left"],
        [PREC.power, "**", "right"],
      ];
      return choice(
        ...levels.map(([level, operator, side]) =>
          prec[side](level, seq(field("left", $._expression), field("operator", operator), field("right", $._expression))),
        ),
      );
    },
    range: ($) =>
      prec.right(PREC.range, seq(field("start", $._expression), "to", field("end", $._expression), optional("exclusive"))),
    ternary: ($) =>
      prec.right(
        PREC.ternary,
        seq(
          field("condition", $._expression),
          alias($._ternary_mark, "?"),
          field("then", $._expression),
          ":",
          field("else", $._expression),
        ),
      ),
    unary: ($) => prec(PREC.unary, seq(choice("!", "-"), $._expression)),
    try_star: ($) => prec(PREC.unary, seq("try", "*", $._expression)),

    member: ($) => prec(PREC.postfix, seq(field("value", $._expression), choice(".", "?."), field("name", $._member_name))),
    method_call: ($) =>
      prec(
        PREC.postfix + 1,
        seq(
          field("value", $._expression),
          choice(".", "?."),
          field("name", $._member_name),
          field("arguments", $.arguments),
        ),
      ),
    _member_name: ($) => alias($.identifier, $.property_identifier),
    index: ($) =>
      prec(
        PREC.postfix,
        seq(
          field("value", $._expression),
          optional(alias($._index_mark, "?")),
          "[",
          field("index", $._expression),
          optional($._line_break),
          "]",
        ),
      ),
    slice: ($) =>
      prec(
        PREC.postfix,
        seq(
          field("value", $._expression),
          "[",
          optional(field("start", $._expression)),
          ":",
          optional(field("end", $._expression)),
          "]",
        ),
      ),
    propagate: ($) => prec(PREC.postfix, seq($._expression, alias($._try_mark, "?"))),

    call: ($) =>
      prec(
        PREC.postfix,
        seq(
          field("function", choice($.identifier, $.parenthesized)),
          field("arguments", $.arguments),
        ),
      ),
    // What is both this and two comparisons is this.
    _generic_call: ($) =>
      prec.dynamic(1, seq(field("function", $.identifier), $.type_arguments, field("arguments", $.arguments))),
    type_arguments: ($) => seq("<", commas1($._type), ">"),
    arguments: ($) => seq("(", list($, $._expression), ")"),
    struct_literal: ($) =>
      prec(
        PREC.postfix,
        seq(field("name", alias($.identifier, $.type_identifier)), alias($._struct_open, "{"), optional($._entries), "}"),
      ),
    // Where a block may follow, it is the block.
    _empty_struct: ($) =>
      prec.dynamic(-1, seq(field("name", alias($.identifier, $.type_identifier)), "{", "}")),
    parenthesized: ($) => seq("(", $._expression, optional($._line_break), ")"),
    list: ($) => seq("[", list($, $._expression), "]"),
    dict: ($) => seq("{", optional($._entries), "}"),
    _entries: ($) => list1($, choice($.entry, $.spread)),
    entry: ($) =>
      seq(
        choice(
          field("key", $._member_name),
          field("key", $.string),
          seq("[", field("key", $._expression), optional($._line_break), "]"),
        ),
        ":",
        field("value", $._expression),
      ),
    closure: ($) =>
      seq(
        alias($._closure_open, "{"),
        optional(field("parameters", alias($._closure_parameters, $.parameters))),
        "->",
        optional($._statements),
        "}",
      ),
    _closure_parameters: ($) => list1($, choice($.parameter, $.rest_parameter)),
    function_expression: ($) => seq("fn", field("parameters", $.parameters), $._braced),

    if: ($) =>
      prec.right(
        seq("if", field("condition", $._expression), $._braced, optional(seq("else", choice($._braced, field("else", $.if))))),
      ),
    match: ($) =>
      seq("match", field("value", $._expression), $._enter, optional(sep1($.arm, optional($._line_break))), "}"),
    arm: ($) => seq(sep1(field("pattern", $._expression), "|"), optional(seq("if", field("guard", $._expression))), "->", field("body", $.block)),
    try: ($) => prec.right(seq("try", $._braced, optional($.catch), optional($.finally))),
    catch: ($) =>
      seq(
        "catch",
        optional(
          choice(field("name", $.identifier), seq("(", field("name", $.identifier), optional($._annotation), ")")),
        ),
        $._braced,
      ),
    finally: ($) => seq("finally", $._braced),
    retry: ($) => seq("retry", field("times", $._operand), $._braced),
    deadline: ($) => seq("deadline", field("time", $._operand), $._braced),
    _operand: ($) =>
      choice(
        $.string,
        $.raw_string,
        $.integer,
        $.float,
        $.duration,
        $.true,
        $.false,
        $.nil,
        $.identifier,
        $.parenthesized,
      ),
    spawn: ($) => seq("spawn", $._braced),
    parallel: ($) =>
      prec.right(
        seq(
          "parallel",
          optional(choice(alias($._each, "each"), alias($._settle, "settle"))),
          field("items", $._expression),
          optional($.options),
          optional($._line_break),
          field("body", choice(alias($._parallel_closure, $.closure), $.block)),
          optional(seq(alias($._as, "as"), alias($._stream, "stream"))),
        ),
      ),
    options: ($) => seq(alias($._with, "with"), "{", list($, $.entry), "}"),
    _parallel_closure: ($) =>
      seq(alias($._body_open, "{"), field("parameters", $.identifier), "->", optional($._statements), "}"),

    // Types

    _type: ($) => choice($._type_atom, $.union_type),
    union_type: ($) => prec.left(seq($._type, "|", $._type_atom)),
    _type_atom: ($) =>
      choice(
        alias($.identifier, $.type_identifier),
        $.generic_type,
        $.nil,
        $.true,
        $.false,
        $.string,
        $.raw_string,
        $.integer,
        alias($._negative_number, $.unary),
        $.list_type,
        $.shape_type,
        $.function_type,
      ),
    generic_type: ($) =>
      prec(1, seq(field("name", alias($.identifier, $.type_identifier)), "<", commas1($._type), ">")),
    list_type: ($) => seq("[", $._type, "]"),
    shape_type: ($) => seq("{", list($, $.shape_field), "}"),
    shape_field: ($) => seq(field("name", $._member_name), optional($._optional_mark), ":", field("type", $._type)),
    function_type: ($) => prec.right(seq("fn", "(", list($, $._type), ")", "->", field("returns", $._type))),

    // Tokens

    identifier: () => /[\p{L}_][\p{L}\p{N}_]*/,
    true: () => "true",
    false: () => "false",
    nil: () => "nil",
    integer: () => /[0-9]+/,
    float: () => /[0-9]+\.[0-9]+/,
    duration: () => /[0-9]+(ms|s|m|h|d|w)/,
    raw_string: () => token(/r"[^"\n]*"/),
    string: ($) =>
      choice(
        seq('"', repeat(choice($._string_text, $.escape_sequence, $.interpolation)), token.immediate('"')),
        seq('"""', repeat(choice($._triple_text, $.interpolation)), token.immediate('"""')),
      ),
    escape_sequence: () => token.immediate(/\\[nt\\"$]/),
    interpolation: ($) => seq(alias(token.immediate("${"), "${"), optional($._expression), "}"),
  },
});

/** `rule`s with `separator` between them. */
function sep1(rule, separator) {
  return seq(rule, repeat(seq(separator, rule)));
}

/** `rule`s with commas between them, and one at the end if one likes. */
function commas1(rule) {
  return seq(sep1(rule, ","), optional(","));
}

function commas(rule) {
  return optional(commas1(rule));
}

/** `rule`s between which stands a comma, a line break or nothing. */
function list1($, rule) {
  return seq(rule, repeat(prec(PREC.element, choice(seq($._separator, rule), rule))), optional(","));
}

function list($, rule) {
  return optional(list1($, rule));
}
