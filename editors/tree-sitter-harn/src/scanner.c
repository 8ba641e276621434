// What needs a look ahead: line breaks, the text of strings, nested comments, what `{` and `?` mean, and
// contextual words. The rules are those of harnpy/syntax/layout.py (docs/spec/01-syntax.md §2, §3, §8).
//
// The scanner has no state: everything is decided from what follows and from what the parser could take.

#include "tree_sitter/parser.h"

#include "words.h"

#include <string.h>

// The order is that of `externals` in grammar.js.
enum TokenType {
  LINE_BREAK,
  BLOCK_COMMENT,
  STRING_TEXT,
  TRIPLE_TEXT,
  STRUCT_OPEN,
  CLOSURE_OPEN,
  BODY_OPEN,
  TERNARY_MARK,
  INDEX_MARK,
  TRY_MARK,
  GEN,
  EACH,
  SETTLE,
  WITH,
  AS,
  STREAM,
  WHERE,
  OUT,
  DESCRIPTION,
  SUMMARIZE,
  TIMEOUT,
  DEFAULT,
  NOT_IN,
  RECOVERING,
};

void *tree_sitter_harn_external_scanner_create(void) { return NULL; }
void tree_sitter_harn_external_scanner_destroy(void *payload) { (void)payload; }
unsigned tree_sitter_harn_external_scanner_serialize(void *payload, char *buffer) {
  (void)payload, (void)buffer;
  return 0;
}
void tree_sitter_harn_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  (void)payload, (void)buffer, (void)length;
}

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }
static void skip(TSLexer *lexer) { lexer->advance(lexer, true); }
static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\r'; }
static bool is_letter(int32_t c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}
static bool is_word(int32_t c) { return is_letter(c) || (c >= '0' && c <= '9'); }

static bool take(TSLexer *lexer, int32_t c) {
  if (lexer->lookahead != c) return false;
  advance(lexer);
  return true;
}

// Pass the rest of a block comment whose `/*` has been read.
static bool pass_block_comment(TSLexer *lexer) {
  for (unsigned depth = 1; depth > 0;) {
    if (lexer->eof(lexer)) return false;
    if (take(lexer, '*')) {
      if (take(lexer, '/')) depth--;
    } else if (take(lexer, '/')) {
      if (take(lexer, '*')) depth++;
    } else {
      advance(lexer);
    }
  }
  return true;
}

static void pass_line(TSLexer *lexer) {
  while (!lexer->eof(lexer) && lexer->lookahead != '\n') advance(lexer);
}

// Pass blanks and comments, with `lines` also line breaks. Returns false in front of a `/` that is none.
static bool pass_gap(TSLexer *lexer, bool lines) {
  for (;;) {
    if (is_blank(lexer->lookahead) || (lines && lexer->lookahead == '\n')) {
      advance(lexer);
    } else if (take(lexer, '\\')) {
      if (!take(lexer, '\n')) return false;
    } else if (take(lexer, '/')) {
      if (take(lexer, '/')) {
        pass_line(lexer);
      } else if (!take(lexer, '*') || !pass_block_comment(lexer)) {
        return false;
      }
    } else {
      return true;
    }
  }
}

// Pass an interpolation whose `${` has been read: braces count, quotes don't.
static void pass_interpolation(TSLexer *lexer) {
  for (unsigned depth = 1; depth > 0 && !lexer->eof(lexer); advance(lexer)) {
    if (lexer->lookahead == '{') depth++;
    if (lexer->lookahead == '}') depth--;
  }
}

// Pass a string that begins here. Returns true if it has no interpolation.
static bool pass_string(TSLexer *lexer) {
  bool plain = true;
  bool triple = false;
  advance(lexer);
  if (take(lexer, '"')) {
    if (!take(lexer, '"')) return true;
    triple = true;
  }
  while (!lexer->eof(lexer)) {
    if (take(lexer, '"')) {
      if (!triple || (take(lexer, '"') && take(lexer, '"'))) return plain;
    } else if (take(lexer, '$')) {
      if (take(lexer, '{')) {
        plain = false;
        pass_interpolation(lexer);
      }
    } else if (!triple && lexer->lookahead == '\n') {
      return plain;
    } else {
      if (!triple && lexer->lookahead == '\\') advance(lexer);
      advance(lexer);
    }
  }
  return plain;
}

// Pass a word into `word`, cut to its size.
static void pass_word(TSLexer *lexer, char *word, unsigned size) {
  unsigned length = 0;
  for (; is_word(lexer->lookahead); advance(lexer)) {
    if (length + 1 < size) word[length++] = lexer->lookahead < 0x80 ? (char)lexer->lookahead : '?';
  }
  word[length] = 0;
}

// Strings

static bool scan_text(TSLexer *lexer, bool triple) {
  bool any = false;
  lexer->mark_end(lexer);
  while (!lexer->eof(lexer)) {
    if (lexer->lookahead == '$') {
      advance(lexer);
      if (lexer->lookahead == '{') return any;
    } else if (triple && lexer->lookahead == '"') {
      advance(lexer);
      if (take(lexer, '"') && lexer->lookahead == '"') return any;
    } else if (!triple && lexer->lookahead == '\\') {
      advance(lexer);
      if (lexer->lookahead != 0 && strchr("nt\\\"$", (char)lexer->lookahead) && lexer->lookahead < 0x80) return any;
      advance(lexer);
    } else if (!triple && (lexer->lookahead == '"' || lexer->lookahead == '\n')) {
      return any;
    } else {
      advance(lexer);
    }
    any = true;
    lexer->mark_end(lexer);
  }
  return any;
}

// Braces, behind which the lexer stands

// Does `}` or `key:` follow?
static bool opens_entries(TSLexer *lexer) {
  if (!pass_gap(lexer, true)) return false;
  if (lexer->lookahead == '"') {
    if (!pass_string(lexer)) return false;
  } else if (is_letter(lexer->lookahead)) {
    char word[2];
    pass_word(lexer, word, sizeof word);
  } else {
    return false;
  }
  return pass_gap(lexer, true) && lexer->lookahead == ':';
}

// Does `name ->` follow?
static bool opens_body(TSLexer *lexer) {
  if (!pass_gap(lexer, true) || !is_letter(lexer->lookahead)) return false;
  char word[2];
  pass_word(lexer, word, sizeof word);
  return pass_gap(lexer, true) && take(lexer, '-') && lexer->lookahead == '>';
}

// Does `->` stand in these braces, and in no others in them?
static bool opens_closure(TSLexer *lexer) {
  for (unsigned depth = 0; !lexer->eof(lexer);) {
    switch (lexer->lookahead) {
      case '"':
        pass_string(lexer);
        continue;
      case '/':
        advance(lexer);
        if (take(lexer, '/')) {
          pass_line(lexer);
        } else if (take(lexer, '*')) {
          pass_block_comment(lexer);
        }
        continue;
      case '(':
      case '[':
      case '{':
        depth++;
        break;
      case ')':
      case ']':
      case '}':
        if (depth == 0) return false;
        depth--;
        break;
      case '-':
        advance(lexer);
        if (depth == 0 && lexer->lookahead == '>') return true;
        continue;
      default:
        break;
    }
    advance(lexer);
  }
  return false;
}

static bool found(TSLexer *lexer, enum TokenType type) {
  lexer->result_symbol = type;
  return true;
}

static bool scan_brace(TSLexer *lexer, const bool *valid) {
  advance(lexer);
  lexer->mark_end(lexer);
  // One look ahead must do: the first two are never both possible outside of lists.
  if (valid[BODY_OPEN]) return opens_body(lexer) && found(lexer, BODY_OPEN);
  if (valid[STRUCT_OPEN]) return opens_entries(lexer) && found(lexer, STRUCT_OPEN);
  if (valid[CLOSURE_OPEN]) return opens_closure(lexer) && found(lexer, CLOSURE_OPEN);
  return false;
}

static bool scan_question_mark(TSLexer *lexer) {
  advance(lexer);
  lexer->mark_end(lexer);
  if (lexer->lookahead == '?' || lexer->lookahead == '.') return false;
  if (!pass_gap(lexer, false)) return found(lexer, TRY_MARK);
  int32_t c = lexer->lookahead;
  if (c == '[') return found(lexer, INDEX_MARK);
  if (c == '(' || c == '{' || c == '"' || (c >= '0' && c <= '9')) return found(lexer, TERNARY_MARK);
  if (c == '!' || c == '-') {
    advance(lexer);
    return found(lexer, lexer->lookahead == (c == '!' ? '=' : '>') ? TRY_MARK : TERNARY_MARK);
  }
  if (!is_letter(c)) return found(lexer, TRY_MARK);
  char word[16];
  pass_word(lexer, word, sizeof word);
  if (!strcmp(word, "r") && lexer->lookahead == '"') return found(lexer, TRY_MARK);
  // Behind a postfix `?` stands a reserved word, if any.
  static const char *const reserved[] = {RESERVED_WORDS};
  for (unsigned i = 0; i < sizeof reserved / sizeof *reserved; i++) {
    if (!strcmp(word, reserved[i])) return found(lexer, TRY_MARK);
  }
  return found(lexer, TERNARY_MARK);
}

// Contextual words, and what must follow each: a letter for any word, 0 for anything.

static const struct {
  const char *word;
  enum TokenType type;
  const char *before;
} CONTEXTUAL[] = {
  {"gen", GEN, "fn"},   {"each", EACH, ""},     {"settle", SETTLE, ""},
  {"with", WITH, "{"},  {"as", AS, ""},         {"stream", STREAM, ""},
  {"where", WHERE, "a"}, {"out", OUT, "a"},     {"description", DESCRIPTION, "\""},
  {"summarize", SUMMARIZE, "{"}, {"timeout", TIMEOUT, ""}, {"default", DEFAULT, ""},
  {"not", NOT_IN, "in"},
};

static bool scan_word(TSLexer *lexer, const bool *valid) {
  char word[16];
  pass_word(lexer, word, sizeof word);
  for (unsigned i = 0; i < sizeof CONTEXTUAL / sizeof *CONTEXTUAL; i++) {
    if (!valid[CONTEXTUAL[i].type] || strcmp(word, CONTEXTUAL[i].word)) continue;
    lexer->mark_end(lexer);
    const char *before = CONTEXTUAL[i].before;
    if (before[0]) {
      if (!pass_gap(lexer, CONTEXTUAL[i].type == SUMMARIZE)) return false;
      if (!strcmp(before, "a")) {
        if (!is_letter(lexer->lookahead)) return false;
      } else if (is_letter(before[0])) {
        pass_word(lexer, word, sizeof word);
        if (strcmp(word, before)) return false;
        if (CONTEXTUAL[i].type == NOT_IN) lexer->mark_end(lexer);
      } else if (lexer->lookahead != before[0]) {
        return false;
      }
    }
    return found(lexer, CONTEXTUAL[i].type);
  }
  return false;
}

// Line breaks

// Does an expression, list or statement go on with what stands here, though a line has ended before it?
static bool goes_on(TSLexer *lexer) {
  if (lexer->eof(lexer)) return true;
  int32_t c = lexer->lookahead;
  if (is_letter(c)) {
    char word[16];
    pass_word(lexer, word, sizeof word);
    return !strcmp(word, "else") || !strcmp(word, "catch") || !strcmp(word, "finally");
  }
  advance(lexer);
  switch (c) {
    case '<': case '>': case ',': case ':': case ')': case ']': case '}':
      return true;
    case '+': case '%': case '/':
      return lexer->lookahead != '=';
    case '*':
      return lexer->lookahead != '=';
    case '|':
      return lexer->lookahead == '>' || lexer->lookahead == '|';
    case '&':
      return lexer->lookahead == '&';
    case '=': case '!':
      return lexer->lookahead == '=';
    case '?':
      return lexer->lookahead == '?' || lexer->lookahead == '.';
    case '.':
      while (is_blank(lexer->lookahead)) advance(lexer);
      return lexer->lookahead != '.';
    default:
      return false;
  }
}

bool tree_sitter_harn_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  (void)payload;
  if (!valid[RECOVERING]) {
    if (valid[STRING_TEXT] || valid[TRIPLE_TEXT]) {
      lexer->result_symbol = valid[STRING_TEXT] ? STRING_TEXT : TRIPLE_TEXT;
      return scan_text(lexer, valid[TRIPLE_TEXT]);
    }
  }

  lexer->mark_end(lexer);
  bool breaks = false;
  // Has a block comment been passed, on whose last line a token stands?
  bool comment = false;
  bool line_comment = false;
  bool line_break = valid[LINE_BREAK] && !valid[RECOVERING];
  for (;;) {
    while (is_blank(lexer->lookahead) || lexer->lookahead == '\n') {
      breaks |= lexer->lookahead == '\n';
      comment ? advance(lexer) : skip(lexer);
    }
    if (lexer->lookahead == '\\') {
      skip(lexer);
      if (lexer->lookahead != '\n') return false;
      skip(lexer);
      continue;
    }
    if (lexer->lookahead != '/') break;
    advance(lexer);
    if (take(lexer, '/')) {
      // It is the parser's, but a line ends behind it.
      if (!line_break) return false;
      pass_line(lexer);
      line_comment = true;
      continue;
    }
    // The line comment comes first.
    if (line_comment) return false;
    if (!take(lexer, '*') || !pass_block_comment(lexer)) return false;
    if (breaks && line_break) {
      while (is_blank(lexer->lookahead)) advance(lexer);
      comment = lexer->lookahead != '\n' && lexer->lookahead != '/';
    }
    if (comment) continue;
    // Where a line ends behind it, that decides.
    lexer->mark_end(lexer);
    return found(lexer, BLOCK_COMMENT);
  }
  if (breaks && line_break) {
    if (!comment) return !goes_on(lexer) && found(lexer, LINE_BREAK);
    // Two characters can't be looked at without being taken, but no statement begins with one of these.
    int32_t c = lexer->lookahead;
    if (lexer->eof(lexer) || (c < 0x80 && strchr("<>,:)]}+%*|&=?.", (char)c))) {
      lexer->mark_end(lexer);
      return found(lexer, BLOCK_COMMENT);
    }
    return !goes_on(lexer) && found(lexer, LINE_BREAK);
  }
  if (valid[RECOVERING]) return false;
  if (lexer->lookahead == '{') return scan_brace(lexer, valid);
  if (lexer->lookahead == '?' && (valid[TERNARY_MARK] || valid[INDEX_MARK] || valid[TRY_MARK])) {
    return scan_question_mark(lexer);
  }
  return is_letter(lexer->lookahead) && scan_word(lexer, valid);
}
