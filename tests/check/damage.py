"""Programs with one damage each, and the lines that it is on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from harnpy.syntax.lexer import Tokens, lex

#: Words and signs of other languages, as somebody types them.
FOREIGN = """def function lambda elif elseif const class new async await switch except raise export del assert
not and or is null None undefined True False this self.x === !== => ++ -- ' # `` <> := :: & | ~ ^ @@ ; ;;
% $ \\ end then do begin unless until pass None: print% echo""".split()
CONTROLS = [
    "\x00",
    "\x07",
    "\x1b[31m",
    "\x7f",
    "\x85",
    "\u202e",
    "\u200b",
    "\ufeff",
    "\xa0",
    "é",
    "猫",
    "\U0001f600",
]


@dataclass(frozen=True)
class Damaged:
    """A text, and the lines in it where it was damaged, counted from 1."""

    text: str
    lines: tuple[int, ...]


Damage = Callable[[Random, str, Tokens], "Damaged | None"]


def _at(text: str, *offsets: int) -> Damaged:
    return Damaged(text, tuple(text.count("\n", 0, offset) + 1 for offset in offsets))


def _token(random: Random, tokens: Tokens) -> int:
    """A token that is no line break, nor the end."""
    return random.choice([i for i, kind in enumerate(tokens.kinds[:-1]) if kind != "NL"])


def _text(source: str, tokens: Tokens, i: int) -> str:
    return source[tokens.starts[i] : tokens.ends[i]]


def delete_token(random: Random, source: str, tokens: Tokens) -> Damaged:
    i = _token(random, tokens)
    return _at(source[: tokens.starts[i]] + source[tokens.ends[i] :], tokens.starts[i])


def insert_token(random: Random, source: str, tokens: Tokens) -> Damaged:
    i, other = _token(random, tokens), _token(random, tokens)
    at = tokens.starts[i]
    return _at(f"{source[:at]}{_text(source, tokens, other)} {source[at:]}", at)


def duplicate_token(random: Random, source: str, tokens: Tokens) -> Damaged:
    i = _token(random, tokens)
    at = tokens.ends[i]
    return _at(f"{source[:at]} {_text(source, tokens, i)}{source[at:]}", at)


def swap_tokens(random: Random, source: str, tokens: Tokens) -> Damaged:
    i = _token(random, tokens)
    j = min(i + 1, len(tokens.kinds) - 2)
    first, second = sorted((i, j))
    a, b, c, d = tokens.starts[first], tokens.ends[first], tokens.starts[second], tokens.ends[second]
    if first == second:
        return _at(source, a)
    return _at(f"{source[:a]}{source[c:d]} {source[b:c]} {source[a:b]}{source[d:]}", a)


def remove_closing(random: Random, source: str, tokens: Tokens) -> Damaged | None:
    return _without(random, source, tokens, ")]}")


def remove_opening(random: Random, source: str, tokens: Tokens) -> Damaged | None:
    return _without(random, source, tokens, "([{")


def _without(random: Random, source: str, tokens: Tokens, brackets: str) -> Damaged | None:
    places = [
        start for kind, start in zip(tokens.kinds, tokens.starts, strict=True) if kind in list(brackets)
    ]
    if not places:
        return None
    at = random.choice(places)
    return _at(source[:at] + source[at + 1 :], at)


def cut_line(random: Random, source: str, tokens: Tokens) -> Damaged:
    lines = source.splitlines(keepends=True)
    i = random.randrange(len(lines))
    return Damaged("".join(lines[:i] + lines[i + 1 :]), (i + 1,))


def cut_file(random: Random, source: str, tokens: Tokens) -> Damaged:
    end = random.randrange(1, len(source))
    return _at(source[:end], end)


def remove_quote(random: Random, source: str, tokens: Tokens) -> Damaged | None:
    places = [i for i, letter in enumerate(source) if letter == '"']
    if not places:
        return None
    at = random.choice(places)
    return _at(source[:at] + source[at + 1 :], at)


def foreign_word(random: Random, source: str, tokens: Tokens) -> Damaged:
    i, word = _token(random, tokens), random.choice(FOREIGN)
    start, end = tokens.starts[i], tokens.ends[i]
    if random.random() < 0.5:
        return _at(f"{source[:start]}{word}{source[end:]}", start)
    return _at(f"{source[:start]}{word} {source[start:]}", start)


def control_character(random: Random, source: str, tokens: Tokens) -> Damaged:
    i = random.randrange(len(source))
    return _at(source[:i] + random.choice(CONTROLS) + source[i:], i)


def random_bytes(random: Random, source: str, tokens: Tokens) -> Damaged:
    i = random.randrange(len(source))
    noise = random.randbytes(random.randrange(1, 8)).decode("utf-8", "replace").replace("\n", " ")
    return _at(source[:i] + noise + source[i:], i)


DAMAGES: dict[str, Damage] = {
    damage.__name__: damage
    for damage in (
        delete_token, insert_token, duplicate_token, swap_tokens, remove_closing, remove_opening, cut_line,
        cut_file, remove_quote, foreign_word, control_character, random_bytes,
    )
}  # fmt: skip


def damaged(random: Random, kind: str, source: str) -> Damaged | None:
    """``source`` with one damage of a kind; None where there is nothing of the sort to damage."""
    return DAMAGES[kind](random, source, lex(source, 0, len(source)))
