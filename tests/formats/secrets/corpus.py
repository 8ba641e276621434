"""Secrets made up from their forms, and contexts to put them into: no file contains one.

A sample is a text and the part of it that must be gone. Everything comes from a seed.
"""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable, Iterator
from importlib.resources import files
from random import Random
from typing import NamedTuple
from urllib.parse import quote

LETTERS, DIGITS, LOWER = string.ascii_letters, string.digits, string.ascii_lowercase
B62 = LETTERS + DIGITS
HEX = "0123456789abcdef"
WORDS = "swordfish correcthorse opensesame trustnoone letmeinplease monkeybusiness hunterhunter qwertzuiop".split()


def passes_luhn(number: str) -> bool:
    digits = [int(char) for char in reversed(number) if char.isdigit()]
    return sum(digits[::2] + [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]) % 10 == 0


def english_words() -> list[str]:
    return files("harnpy.formats.secrets").joinpath("bip39_words.txt").read_text().split()


class Sample(NamedTuple):
    kind: str
    name: str
    text: str
    secret: str


def _run(random: Random, alphabet: str, length: int) -> str:
    # A letter and a digit: without either, a short run may be a word or a number.
    body = "".join(random.choice(alphabet) for _ in range(length - 2))
    return random.choice([c for c in alphabet if c.isalpha()]) + body + random.choice("23456789")


#: The prefix in two pieces, the alphabet and the length of what follows.
PREFIXED = [
    ("s", "k-proj-", B62, 48), ("s", "k-ant-api03-", B62 + "-_", 93), ("s", "k-or-v1-", HEX, 64), ("g", "sk_", B62, 52),
    ("xa", "i-", B62, 80), ("h", "f_", LETTERS + DIGITS, 34), ("r", "8_", B62, 37), ("pp", "lx-", B62, 48),
    ("AK", "IA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16), ("AI", "za", B62 + "-_", 35), ("ya", "29.", B62 + "-_", 120),
    ("GO", "CSPX-", B62 + "-_", 28), ("do", "p_v1_", HEX, 64), ("da", "pi", HEX, 32), ("gh", "p_", B62, 36),
    ("github", "_pat_", B62, 82), ("gl", "pat-", B62 + "-_", 20), ("AT", "ATT3", B62 + "-_", 180), ("np", "m_", B62, 36),
    ("py", "pi-AgE", B62 + "-_", 150), ("ruby", "gems_", HEX, 48), ("dckr", "_pat_", B62 + "-_", 27), ("hv", "s.", B62, 24),
    ("dp", ".pt.", B62, 43), ("xo", "xb-", DIGITS + "-" + B62, 50), ("xa", "pp-1-A0", B62 + "-", 80), ("wh", "sec_", B62, 32),
    ("sk", "_live_", B62, 24), ("rk", "_live_", B62, 24), ("sq0", "csp-", B62 + "-_", 43), ("shp", "at_", HEX, 32),
    ("lin", "_api_", B62, 40), ("fi", "gd_", B62 + "-_", 40), ("gl", "sa_", B62, 41), ("NR", "AK-", "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", 27),
    ("ts", "key-auth-", B62, 30), ("PM", "AK-", HEX, 58), ("nv", "api-", B62 + "-_", 64), ("tv", "ly-", B62, 32), ("nt", "n_", B62, 46),
    ("SK", "", HEX, 32), ("ke", "y-", HEX, 32), ("rz", "p_live_", B62, 14), ("sn", "trys_", B62, 60), ("AGE-SECRET-", "KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
]  # fmt: skip


def _prefixed(random: Random) -> Iterator[Sample]:
    for first, second, alphabet, length in PREFIXED:
        key = first + second + _run(random, alphabet, length)
        yield Sample(first + second, "SERVICE_VALUE", key, key)


def _structured(random: Random) -> Iterator[Sample]:
    def run(alphabet: str, length: int) -> str:
        return _run(random, alphabet, length)

    def whole(kind: str, text: str) -> Sample:
        return Sample(kind, "SERVICE_VALUE", text, text)

    jwt = ".".join(
        base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
        for part in ('{"alg":"HS256"}', f'{{"sub":"{run(B62, 8)}"}}')
    )
    yield whole("jwt", f"{jwt}.{run(B62 + '-_', 43)}")
    yield whole("sendgrid", f"SG{'.'}{run(B62, 22)}.{run(B62, 43)}")
    yield whole("discord bot", f"M{run(B62, 23)}.{run(B62, 6)}.{run(B62 + '-_', 27)}")
    yield whole("telegram", f"{random.randrange(10**8, 10**10)}:A{'A'}{run(B62 + '-_', 33)}")
    yield whole("mailchimp", f"{run(HEX, 32)}-us{random.randrange(1, 22)}")
    yield whole("random", run(B62, 40))
    yield whole("azure ad", f"{run(B62, 3)}8Q{'~'}{run(B62, 34)}")
    yield whole("random base64", base64.b64encode(random.randbytes(45)).decode())
    for host in (
        "hooks.slack.com/services/T0",
        "discord.com/api/webhooks/1",
        "acme.webhook.office.com/webhookb2/",
    ):
        tail = f"{run(B62, 8)}/B{run(B62, 8)}/{run(B62, 24)}"
        yield Sample("webhook", "HOOK", f"https://{host}{tail}", tail)
    body = "\n".join(run(B62 + "+/", 64) for _ in range(4))
    yield Sample(
        "pem", "FILE", f"-----BEGIN {'RSA PRIVATE'} KEY-----\n{body}\n-----END {'RSA PRIVATE'} KEY-----", body
    )
    word = random.choice(WORDS)
    mixed = run(B62 + "!%^*", 14)
    for scheme in ("postgres", "mysql", "mongodb+srv", "redis", "amqp"):
        yield Sample("connection url", "DATABASE_URL", f"{scheme}://bo:{mixed}@db.internal:5432/app", mixed)
    yield Sample(
        "token url", "REMOTE", f"https://{run(B62, 40)}@git.example.com/a/b.git".replace("://", "://", 1), ""
    )
    yield Sample(
        "connection string",
        "CONNECTION",
        f"Server=tcp:db,1433;User Id=bo;Password={mixed};Encrypt=True",
        mixed,
    )
    account = base64.b64encode(random.randbytes(64)).decode()
    yield Sample(
        "storage",
        "STORAGE",
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={account};EndpointSuffix=core",
        account,
    )
    yield Sample("netrc", "FILE", f"machine api.example.com login bo password {mixed}", mixed)
    yield Sample("netrc words", "FILE", f"machine api.example.com\n  login bo\n  password {word}", word)
    yield Sample("curl", "COMMAND", f"curl -sS -u bo:{mixed} https://api.example.com/v1", mixed)
    yield Sample("curl words", "COMMAND", f"curl https://api.example.com --user bo:{word}", word)
    docker = base64.b64encode(f"bo:{mixed}".encode()).decode()
    yield Sample(
        "docker", "CONFIG", json.dumps({"auths": {"registry.example.com": {"auth": docker}}}), docker
    )
    yield Sample("bearer", "HEADER", f"Authorization: Bearer {run(B62 + '-_', 30)}", "")
    yield Sample("basic", "HEADER", f"Authorization: Basic {docker}", docker)
    yield Sample("xml", "CONFIG", f"<db><password>{word}</password></db>", word)
    yield Sample("sql", "QUERY", f"CREATE USER bo WITH PASSWORD '{word}'", word)
    yield Sample("code", "LINE", f"define('DB_PASSWORD', '{word}');", word)
    yield Sample("subscript", "LINE", f"os.environ['API_TOKEN'] = '{mixed}'", mixed)
    yield Sample("flag", "COMMAND", f"deploy --password {word} --dry-run", word)


def _named(random: Random) -> Iterator[Sample]:
    for name in (
        "aws_secret_access_key",
        "DB_PASSWORD",
        "password",
        "api_key",
        "X-Auth-Token",
        "clientSecret",
        "PGPASSWORD",
    ):
        is_password = "assword" in name.lower() or "ASSWORD" in name
        for alphabet, length in ((HEX, 32), (B62, 16), (B62 + "/+", 40)):
            value = _run(random, alphabet, length)
            yield Sample(f"named {name}", name, value, value)
        if is_password:
            word = random.choice(WORDS)
            yield Sample(f"words {name}", name, word, word)


def named_like_secrets(random: Random) -> Iterator[Sample]:
    """Values that only their names give away."""
    for name in (
        "TWILIO_AUTH_TOKEN", "SECRET_KEY", "ENCRYPTION_KEY", "signing_secret", "sessionSecret", "JWT_SECRET",
        "wallet_private_key", "HMAC_KEY",
    ):  # fmt: skip
        length = 32 if name.startswith("TWILIO") else random.choice((40, 64, 64, 128))
        value = _run(random, HEX, length)
        yield Sample(f"{length} digits {name}", name, value, value)
    for name in ("password", "dbPassword", "REDIS_PASS", "passphrase", "admin_password"):
        alphabet = random.choice((LOWER, LETTERS))
        word = "".join(random.choice(alphabet) for _ in range(random.randrange(8, 20)))
        yield Sample(f"letters {name}", name, word, word)


def of_standards(random: Random) -> Iterator[Sample]:
    session = "FwoGZXIv" + "YXdzE" + base64.b64encode(random.randbytes(270)).decode()
    yield Sample("aws session", random.choice(("AWS_SESSION_TOKEN", "note")), session, session)
    account, token = "A" + "C" + _run(random, HEX, 32), _run(random, HEX, 32)
    yield Sample("twilio url", "CALLBACK", f"https://{account}:{token}@api.twilio.com/2010-04-01", token)
    words = english_words()
    for name in ("MNEMONIC", "seed_phrase", "wallet", "note"):
        phrase = " ".join(random.choice(words) for _ in range(random.choice((12, 15, 24))))
        yield Sample(f"mnemonic {name}", name, phrase, phrase)
    for start, length in (
        ("4", 16),
        ("5" + random.choice("12345"), 16),
        ("37", 15),
        ("6011", 16),
        ("36", 14),
    ):
        number = start + "".join(random.choice(DIGITS) for _ in range(length - 1 - len(start)))
        number += next(digit for digit in DIGITS if passes_luhn(number + digit))
        if random.random() < 0.5 and length == 16:
            number = random.choice(" -").join(number[at : at + 4] for at in range(0, 16, 4))
        yield Sample("card", random.choice(("card_number", "CARD", "note")), number, number)


def corpus(seed: int, rounds: int = 5) -> list[Sample]:
    random = Random(seed)
    made = [sample for _ in range(rounds) for make in MAKERS for sample in make(random)]
    return [sample if sample.secret else sample._replace(secret=_rarest(sample.text)) for sample in made]


MAKERS = (_prefixed, _structured, _named, named_like_secrets, of_standards)


def _rarest(text: str) -> str:
    """The longest run of letters and digits."""
    return max("".join(c if c.isalnum() or c in "-_" else " " for c in text).split(), key=len)


CONTEXTS: dict[str, Callable[[str, str], str]] = {
    "env file": lambda name, text: f"# staging\nDEBUG=1\n{name}={_shell_word(text)}\nPORT=80\n",
    "yaml": lambda name, text: f"service:\n  user: bo\n  {name}: {text}\n  port: 80\n",
    "json": lambda name, text: json.dumps({"user": "bo", name: text, "n": 1}),
    "json in json": lambda name, text: json.dumps({"body": json.dumps({"inner": json.dumps({name: text})})}),
    "toml": lambda name, text: f"[service]\nuser = \"bo\"\n{name} = {json.dumps(text)}\nport = 80\n",
    "url": lambda name, text: f"GET https://api.example.com/v1?user=bo&{name}={quote(text, safe='')}&page=2",
    "header": lambda name, text: f"POST /v1 HTTP/1.1\r\nHost: a.b\r\n{name}: {text}\r\nAccept: */*\r\n",
    "shell": lambda name, text: f"#!/bin/sh\nexport {name}={_shell_word(text)}\n./run",
    "python": lambda name, text: f"USER = 'bo'\n{name} = {text!r}\nclient = connect(USER, {name})\n",
    "markdown": lambda name, text: f"# Setup\n\n- **user**: `bo`\n- **{name}**: `{text}`\n\n| a | b |\n",
    "log": lambda name, text: f"2026-01-02T03:04:05Z INFO worker started {name}={text} in 3 ms",
    "prose": lambda name, text: f"Hi Bo, on the staging server the {name} is {text}, please keep it. Thanks!",
    # More of the same kinds.
    "traceback": lambda name, text: f'File "a.py", line 3, in connect\n    connect({name}={text!r})\nValueError: no route',
    "diff": lambda name, text: f"--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-DEBUG=1\n+{name}={text}\n",
    "base64": lambda name, text: f"data: {base64.b64encode(f'{name}={text}'.encode()).decode()}",
    "dict": lambda name, text: repr({"user": "bo", name: text}),
    "ini": lambda name, text: f"[section]\nuser = bo\n{name} = {text}\n",
}  # fmt: skip


def _shell_word(text: str) -> str:
    return f"'{text}'" if " " in text else text


def leaked(secret: str, masked: str) -> bool:
    """Whether a part of the secret can still be read, as it is or in the encodings of the contexts."""
    return bool(leaks([secret], masked))


def leaks(secrets: list[str], masked: str) -> list[str]:
    """The secrets of which a part can still be read in ``masked``."""
    parts = {masked[at : at + _PART] for at in range(len(masked) - _PART + 1)}
    return [secret for secret in secrets if any(_is_part(form, masked, parts) for form in _forms(secret))]


_PART = 12


def _forms(secret: str) -> Iterator[str]:
    raw = secret.encode()
    yield from (secret, quote(secret, safe=""), secret.replace("\n", "\\n"))
    for skip in range(3):
        yield base64.b64encode(raw[skip : skip + (len(raw) - skip) // 3 * 3]).decode()


def _is_part(form: str, text: str, parts: set[str]) -> bool:
    if len(form) < _PART:
        return len(form) >= 6 and form in text
    return any(form[at : at + _PART] in parts for at in range(len(form) - _PART + 1))
