"""Writes what the grammars of editors share with our own lexer: `python editors/grammars.py`.

A new reserved word or operator is in the grammars as soon as this has run, and a test
(tests/editors/test_grammars.py) says when it hasn't.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from harnpy.syntax.layout import MEMBER_WORDS, TERNARY_FOLLOWS  # noqa: E402
from harnpy.syntax.lexer import RESERVED  # noqa: E402

WORDS = HERE / "tree-sitter-harn/src/words.h"
HIGHLIGHTS = HERE / "tree-sitter-harn/queries/highlights.scm"
TEXTMATE = HERE / "vscode/syntaxes/harn.tmLanguage.json"

#: Words by what themes call them; a reserved word that is in none of these is a `keyword.other`.
GROUPS = {
    "constant.language": "true false nil",
    "keyword.control": """break catch continue deadline defer else emit finally for guard if match mutex
        parallel require retry return select spawn throw try while yield""",
    "keyword.control.import": "from import",
    "keyword.operator.expression": "exclusive in to",
    "storage.modifier": "extends override pub",
    "storage.type": "enum eval_pack fn impl interface let pipeline skill struct tool type var",
}

# Characters of words: those of `\w` in Python, which aren't those of Oniguruma's.
_START = r"[\p{L}_]"
_MORE = r"[\p{L}\p{N}_]"
_NAME = rf"{_START}{_MORE}*"
_END = rf"(?!{_MORE})"
#: What may follow in the line of a word before something that decides what it means.
_BLANK = r"(?:[ \t\r]|/\*(?:[^*]|\*(?!/))*\*/)*"
#: What an operand or a type can end with, as far as one character tells.
_OPERAND = r"[\p{L}\p{N}_\"\)\]\}>?]"
#: A string without interpolation, or how one with three quotes begins.
_PLAIN_STRING = r'"(?:[^"\\$\n]|\\.|\$(?!\{))*"'

Rule = dict[str, Any]


def words(text: Iterable[str]) -> str:
    return "(?:" + "|".join(sorted(text)) + ")" + _END


def rule(scope: str, pattern: str) -> Rule:
    return {"name": f"{scope}.harn", "match": pattern}


def behind(before: str, pattern: str, scope: str) -> Rule:
    """A word that means something behind ``before`` and blanks of the same line."""
    return {"match": rf"{before}[ \t\r]*({pattern})", "captures": captures(scope)}


def begins(behind_one_of: str, pattern: str, scope: str) -> Rule:
    """A word that means something where a line begins, or something in braces."""
    return behind(f"(?:^|(?<=[{behind_one_of}]))", pattern, scope)


def captures(*scopes: str) -> dict[str, Rule]:
    return {str(i): {"name": f"{scope}.harn"} for i, scope in enumerate(scopes, 1) if scope}


def include(*names: str) -> list[Rule]:
    return [{"include": f"#{name}"} for name in names]


def braces(*inside: str, begin: str = r"\{", scopes: tuple[str, ...] = ()) -> Rule:
    """What stands between braces, and the braces; ``scopes`` are those of the groups of ``begin``."""
    brace = "punctuation.section.braces"
    return {
        "begin": begin,
        "beginCaptures": captures(*scopes) if scopes else {"0": {"name": f"{brace}.begin.harn"}},
        "end": r"\}",
        "endCaptures": {"0": {"name": f"{brace}.end.harn"}},
        "patterns": include(*inside, "code"),
    }


def declares(word: str, scope: str) -> Rule:
    """The word of a declaration and its name."""
    return {
        "match": rf"({word}){_END}(?:([ \t\r]+)({_NAME}))?",
        "captures": {
            "1": {"name": f"{group_of(word)}.{word}.harn"},
            "3": {"patterns": [*include("words"), rule(scope, _NAME)]},
        },
    }


def body(word: str, scope: str, *inside: str) -> Rule:
    """A declaration whose body has words of its own, up to the closing brace."""
    return {
        "begin": rf"{word}{_END}",
        "beginCaptures": {"0": {"name": f"{group_of(word)}.{word}.harn"}},
        "end": r"(\})|(?=[;)\]]|^[ \t]*(?:pub|fn|let|var|pipeline|tool|import)" + _END + ")",
        "endCaptures": captures("punctuation.section.braces.end"),
        "patterns": [
            {
                "begin": r"\{",
                "beginCaptures": {"0": {"name": "punctuation.section.braces.begin.harn"}},
                "end": r"(?=\})",
                "patterns": include(*inside, "code"),
            },
            *([rule(scope, rf"(?!{words(RESERVED)}){_NAME}")] if scope else []),
            *include("code"),
        ],
    }


def group_of(word: str) -> str:
    return next((group for group, members in GROUPS.items() if word in members.split()), "keyword.other")


def string(scope: str, begin: str, end: str, *inside: str) -> Rule:
    return {
        "name": f"string.quoted.{scope}.harn",
        "begin": begin,
        "beginCaptures": {"0": {"name": "punctuation.definition.string.begin.harn"}},
        "end": end,
        "endCaptures": {"0": {"name": "punctuation.definition.string.end.harn"}},
        "patterns": include(*inside),
    }


def grouped() -> frozenset[str]:
    """The words of `GROUPS`."""
    known = frozenset(word for members in GROUPS.values() for word in members.split())
    assert known <= RESERVED, f"GROUPS has words that aren't reserved: {sorted(known - RESERVED)}"
    return known


def textmate() -> Rule:
    """The TextMate grammar."""
    other = RESERVED - grouped()
    keywords = [rule(group, words(members.split())) for group, members in GROUPS.items()]
    keywords += [rule("keyword.other", words(other))] if other else []
    contextual = "keyword.other"
    barred = words(RESERVED - MEMBER_WORDS)
    repository: dict[str, Rule | list[Rule]] = {
        "code": include(
            "comments",
            "strings",
            "numbers",
            "attribute",
            "member",
            "bodies",
            "declarations",
            "contextual",
            "description",
            "words",
            "brace",
            "names",
            "operators",
        ),
        "comments": [
            {"name": "comment.line.documentation.harn", "match": r"///(?!/).*"},
            {"name": "comment.line.double-slash.harn", "match": r"//.*"},
            {
                "name": "comment.block.documentation.harn",
                "begin": r"/\*\*(?![*/])",
                "end": r"\*/",
                "patterns": include("nested"),
            },
            *include("nested"),
        ],
        "nested": {
            "name": "comment.block.harn",
            "begin": r"/\*",
            "end": r"\*/",
            "patterns": include("nested"),
        },
        "strings": [
            {"name": "string.quoted.other.raw.harn", "match": r'r"[^"\n]*"?'},
            string("triple", r'"""', r'"""', "interpolation"),
            # It goes on behind a backslash at the end of a line, and is open at any other end.
            string("double", r'"', r'"|(?<![\\\n])$', "escapes", "interpolation"),
        ],
        "escapes": [
            rule("constant.character.escape", r'\\[nt\\"$]'),
            {"match": r"\\(?:.|\n)"},
        ],
        "interpolation": {
            "name": "meta.embedded.expression.harn",
            "begin": r"\$\{",
            "beginCaptures": {"0": {"name": "punctuation.definition.template-expression.begin.harn"}},
            "end": r"\}",
            "endCaptures": {"0": {"name": "punctuation.definition.template-expression.end.harn"}},
            "patterns": include("code"),
        },
        "numbers": [
            rule("constant.numeric.float", r"[0-9]+\.[0-9]+"),
            rule("constant.numeric.duration", r"[0-9]+(?:ms|[smhdw](?![\p{L}\p{N}]))"),
            rule("constant.numeric.integer", r"[0-9]+"),
        ],
        "attribute": {
            "match": rf"(@)({_NAME})?",
            "captures": captures("punctuation.decorator", "entity.name.function.decorator"),
        },
        # A name behind a dot, on whatever line, though it be a reserved word.
        "member": [
            rule("keyword.operator.spread", r"\.[ \t\r]*\.[ \t\r]*\."),
            {
                "begin": r"\?\.|\.",
                "beginCaptures": {"0": {"name": "punctuation.accessor.harn"}},
                "end": rf"(?!{barred})(?:({_NAME})(?={_BLANK}\()|({_NAME}))|(?=[^\s/\\])",
                "endCaptures": captures("entity.name.function.member", "variable.other.property"),
                "patterns": include("comments"),
            },
        ],
        "bodies": [
            body("skill", "entity.name.function", "field"),
            body("eval_pack", "entity.name.function", "summary"),
            body("select", "", "case"),
        ],
        "declarations": [
            *(declares(word, "entity.name.function") for word in ("fn", "pipeline", "override", "tool")),
            *(declares(word, "entity.name.type") for word in ("struct", "enum", "interface", "type", "impl")),
        ],
        "contextual": [
            rule(contextual, rf"gen(?=[ \t\r]+fn{_END})"),
            {
                "begin": rf"parallel{_END}",
                "beginCaptures": {"0": {"name": "keyword.control.harn"}},
                "end": rf"((?:each|settle){_END})|(?=[^\s/\\])",
                "endCaptures": captures("keyword.control"),
                "patterns": include("comments"),
            },
            {
                "match": rf"(not)([ \t\r]+)(in){_END}",
                "captures": captures("keyword.operator.expression", "", "keyword.operator.expression"),
            },
            behind(f"(?<={_OPERAND})", rf"with{_END}(?={_BLANK}\{{)", contextual),
            {
                "match": rf"(?<=\}})([ \t\r]*)(as)(?:([ \t\r]+)(stream))?{_END}",
                "captures": captures("", contextual, "", contextual),
            },
            behind(f"(?<={_OPERAND})", rf"where(?=[ \t\r]+{_NAME}{_BLANK}:)", contextual),
            behind("(?<=[<,])", rf"out(?=[ \t\r]+{_START})", contextual),
        ],
        "words": keywords,
        "brace": braces(),
        # Line by line: the first thing in a body is behind its brace, or begins a line.
        "description": begins("{", rf"description{_END}(?=[ \t]*{_PLAIN_STRING})", contextual),
        "summary": begins("{;", rf"summarize{_END}(?=\s*(?:\{{|$))", contextual),
        "case": begins("{}", rf"(?:timeout|default){_END}", contextual),
        "field": begins("{;", rf"(?!{words(RESERVED)}){_NAME}", "variable.other.property"),
        "names": [
            rule("entity.name.type", rf"\p{{Lu}}{_MORE}*"),
            rule("entity.name.function.call", rf"{_NAME}(?={_BLANK}\()"),
            rule("variable.other", _NAME),
        ],
        "operators": [
            rule("keyword.operator.arrow", "->"),
            rule("keyword.operator.pipe", r"\|>"),
            rule("keyword.operator.comparison", "==|!=|<=|>=|<|>"),
            rule("keyword.operator.assignment", r"[-+*/%]?="),
            rule("keyword.operator.logical", r"&&|\|\||!|\?\?"),
            rule("keyword.operator.arithmetic", r"\*\*|[-+*/%]"),
            rule("keyword.operator", r"[?|]"),
            rule("punctuation.separator.comma", ","),
            rule("punctuation.separator", "[:;]"),
            rule("punctuation.section", r"[()\[\]]"),
            # Of a program that isn't whole.
            rule("punctuation.section.braces.end", r"\}"),
            rule("invalid.illegal", r"[^\s]"),
        ],
    }
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Harn",
        "scopeName": "source.harn",
        "fileTypes": ["harn"],
        "firstLineMatch": r"^#!.*\bharn",
        "patterns": [rule("comment.line.shebang", r"\A#!.*"), *include("code")],
        "repository": {
            name: rules if isinstance(rules, dict) else {"patterns": rules}
            for name, rules in repository.items()
        },
    }


def words_header() -> str:
    """What tree-sitter's scanner must know of words."""
    stop = ", ".join(f'"{word}"' for word in sorted(RESERVED - TERNARY_FOLLOWS))
    about = "// Written by editors/grammars.py: reserved words that no operand begins with."
    return f"{about}\n#define RESERVED_WORDS {stop}\n"


#: What tree-sitter calls the groups of words that it knows by other names.
_CAPTURES = {
    "constant.language": "constant.builtin",
    "keyword.operator.expression": "keyword.operator",
}
#: Words that are nodes of their own in the tree.
_NODES = frozenset("break continue false nil true".split())
#: Contextual words, as the parser sees them.
_CONTEXTUAL_NODES = ("as", "default", "description", "each", "gen", "not in", "out", "settle", "stream")
_CONTEXTUAL_NODES += ("summarize", "timeout", "where", "with")


def any_of(nodes: Iterable[str], capture: str) -> str:
    return "".join(["[\n", *(f"  {node}\n" for node in nodes), f"] @{capture}\n"])


def highlights() -> str:
    """The queries that colour, by what the parser says of each token; a later pattern is the stronger."""
    listed = []
    for group, members in {**GROUPS, "keyword": " ".join(RESERVED - grouped())}.items():
        nodes = [f"({word})" if word in _NODES else f'"{word}"' for word in sorted(members.split())]
        if nodes:
            listed.append(any_of(nodes, _CAPTURES.get(group, "keyword")))
    listed.append(any_of((f'"{word}"' for word in _CONTEXTUAL_NODES), "keyword"))
    return "; Written by editors/grammars.py.\n\n" + _STRUCTURE + "\n" + "\n".join(listed)


_STRUCTURE = """\
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
"""


def written() -> dict[Path, str]:
    """Return what every file that this writes has to be."""
    return {
        TEXTMATE: json.dumps(textmate(), indent=2, ensure_ascii=False) + "\n",
        WORDS: words_header(),
        HIGHLIGHTS: highlights(),
    }


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
