"""Secret values in XML, SQL, forms, blocks of YAML and code: no plain `name=value`. Pure.

Each rule keeps what is in its group ``keep``; what follows is masked. Spec: 08 §17.
"""

from __future__ import annotations

import re

from harnpy.text.secrets.names import BETWEEN, NAME, PASSWORD

_FLAGS = re.VERBOSE | re.IGNORECASE
_WHOLE_NAME = rf"(?:(?:[\w.-]{{0,80}}{BETWEEN})?{NAME}|\w{{0,40}}{PASSWORD})"
_NEW_LINE = r"(?:\r?\n|(?:\\r)?\\n)"
_QUOTED = r"""(?!\[redacted|-|\$|(?-i:[A-Z_]+[\\"']))[^"'\n\\\s]{3,400}(?=\\*["'])"""

_ELEMENT = rf"(?P<keep><{_WHOLE_NAME}(?:\s[^<>]{{0,100}})?>)(?!\[redacted)[^<>\s][^<>]{{0,400}}(?=</)"
_SQL = (
    r"""(?P<keep>\b(?:identified\s+by|(?:with|encrypted)\s+password|password\s+for\s+\S{1,80}\s*=)\s*\\*["'])"""
    + _QUOTED
)
_PART_OF_FORM = rf"""(?P<keep>name=\\*"{_WHOLE_NAME}\\*"{_NEW_LINE}{{2}})(?!\[redacted)[^\s"'\\]+"""
_BLOCK = rf"""(?P<keep>(?<![A-Za-z0-9]){NAME}:[ ]*[|>][+-]?{_NEW_LINE}[ \t]+)(?!\[redacted)[^\s\\]+"""
#: ``environ['API_TOKEN'] = 'x'``, ``define('DB_PASSWORD', 'x')``
_PAIR = (
    rf"""(?P<keep>(?:\[\\*["']{_WHOLE_NAME}\\*["']\s{{0,4}}\]\s{{0,4}}=(?!=)|\(\\*["']{_WHOLE_NAME}\\*["']\s{{0,4}},)
        \s{{0,4}}\\*["'])"""
    + _QUOTED
)
_CALL = rf"""(?P<keep>(?<![A-Za-z0-9])(?!get|ask|check)[A-Za-z]{{0,40}}{PASSWORD}\(\\*["'])""" + _QUOTED
_ORACLE = r"(?P<keep>jdbc:oracle:\w{1,20}:[^\s/@]{1,64}/)(?!\[redacted)[^\s@]+(?=@)"

DOCUMENT_RULES = tuple(
    re.compile(pattern, _FLAGS) for pattern in (_ELEMENT, _SQL, _PART_OF_FORM, _BLOCK, _PAIR, _CALL, _ORACLE)
)
