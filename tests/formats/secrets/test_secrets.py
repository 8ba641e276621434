"""What is masked and what stays: secrets and harmless strings by the thousand, from seeds. Spec: 08 §17."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import time
import uuid
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.formats.secrets.forms import FORMS, WEBHOOKS
from harnpy.formats.secrets.known_values import SecretValues
from harnpy.formats.secrets.masking import MASK, mask_secrets, mask_value
from harnpy.llm.configuration.known_providers import ProviderConfig
from harnpy.llm.providers.service_errors import redacted as error_without_secrets
from harnpy.llm.request import Request
from harnpy.llm.transcript_log import Segment
from harnpy.workflow.bundle import export_run, validate_bundle, without_secrets
from harnpy.workflow.friction import redacted as friction_text
from harnpy.workflow.report import html_report
from tests.counts import COUNT
from tests.formats.secrets.corpus import CONTEXTS, WORDS, Sample, corpus, english_words, leaked, leaks
from tests.support import assert_linear

CORPUS = corpus(20 + COUNT.seed, COUNT.secret_rounds)
ROOT = Path(__file__).parents[3]


def in_context(at: int, sample: Sample) -> str:
    return [*CONTEXTS.values()][at % len(CONTEXTS)](sample.name, sample.text)


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) >= (400 if COUNT.campaign >= 1 else 200)
    assert len({sample.kind for sample in CORPUS}) >= 90
    assert len(CONTEXTS) >= 12


@pytest.mark.parametrize("context", CONTEXTS)
def test_secrets_in_texts(context: str) -> None:
    texts = [(sample, CONTEXTS[context](sample.name, sample.text)) for sample in CORPUS]
    assert all(leaked(sample.secret, text) for sample, text in texts if sample.kind != "pem"), (
        "nothing to mask"
    )
    left = [(sample.kind, text) for sample, text in texts if leaked(sample.secret, mask_secrets(text))]
    assert len(left) <= len(texts) * 0.005, left


@pytest.mark.parametrize(
    "artefact", ["sanitized", "local", "replay_only", "report", "friction", "error", "json", "sidecar"]
)
def test_secrets_in_artefacts(artefact: str) -> None:
    texts = [in_context(at, sample) for at, sample in enumerate(CORPUS)]
    events = [{"kind": "message", "role": "user", "text": text} for text in texts]
    run = {"id": "run_1", "status": "completed", "transcript": {"_type": "transcript", "events": events}}
    config = ProviderConfig("openai", "https://api.example.com", "bearer")
    match artefact:
        case "report":
            run["stages"] = [
                {"id": str(at), "node_id": str(at), "visible_text": "\n\n".join(texts[at : at + 20])}
                for at in range(0, len(texts), 20)
            ]
            shown = html_report(run)
        case "friction":
            shown = "\n".join(map(friction_text, texts))
        case "error":
            shown = "\n".join(error_without_secrets(text, config) for text in texts)
        case "json":
            shown = str(without_secrets(texts))
        case "sidecar":
            shown = sidecar(texts)
        case mode:
            bundle = export_run(run, mode)
            assert validate_bundle(bundle) == []
            shown = str(bundle)
    left = leaks([sample.secret for sample in CORPUS], shown)
    assert len(left) <= len(CORPUS) * 0.005, left


def sidecar(texts: list[str]) -> str:
    """What the log of model calls says of a loop that said and was told these texts."""
    lines: list[str] = []
    log = Segment(lines.append, lambda: 0.0)
    request = Request([], texts[0], "mock", "m", tools=[{"description": texts[1]}])
    log.request(request, "c1")
    for text in texts:
        log.message({"role": "user", "content": text})
        log.message({"role": "tool_result", "content": [{"type": "text", "text": text}]})
        log.interpreted(text, [{"name": "run", "arguments": {"command": text}}], [text])
    assert all(isinstance(json.loads(line), dict) for line in lines)
    return "".join(lines)


def test_another_scanner_finds_nothing_that_is_left(tmp_path: Path) -> None:
    from detect_secrets import SecretsCollection
    from detect_secrets.settings import default_settings

    file, found = tmp_path / "masked.txt", SecretsCollection()
    file.write_text("\n".join(mask_secrets(in_context(at, sample)) for at, sample in enumerate(CORPUS)))
    with default_settings():
        found.scan_file(str(file))
    assert [
        (each.type, each.secret_value) for _, each in found if "redacted" not in str(each.secret_value)
    ] == []


def lines_of_this_repository() -> list[str]:
    files = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "harnpy").rglob("*.py"),
        *(ROOT / "stdlib").rglob("*.harn"),
    ]
    return [line for path in sorted(files) for line in path.read_text().splitlines() if len(line) > 20]


def image(random: Random) -> str:
    """The bytes of a small picture, with the head of its format."""
    head = random.choice(
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            b"GIF89a",
            b"\xff\xd8\xff\xe0\0\x10JFIF\0",
            b"RIFF\x24\0\0\0WEBPVP8 ",
        )
    )
    return base64.b64encode(head + random.randbytes(random.choice((40, 90, 400)))).decode()


def harmless(random: Random, count: int) -> list[str]:
    """Prose and code from this repository, and as many names and numbers of things that aren't secret."""
    made: list[str] = []

    def digits(length: int) -> str:
        return "".join(random.choice("0123456789") for _ in range(length))

    while len(made) < count // 2:
        digest = hashlib.sha256(random.randbytes(8))
        id = uuid.UUID(bytes=random.randbytes(16))
        hexadecimal, coded = digest.hexdigest(), image(random)
        version = ".".join(str(random.randrange(30)) for _ in range(3))
        folder, name = (
            random.choice(("/usr/lib", "src/app", "C:\\\\Users\\\\bo", "~/work")),
            random.choice(WORDS),
        )
        made += [
            hexadecimal, hexadecimal[:40], f"sha256:{hexadecimal}", str(id), f"run_{id}",
            f"sha512-{base64.b64encode(random.randbytes(64)).decode()}",
            f"toolu_{hexadecimal[:24]}",
            f"commit {hexadecimal[:40]}",
            f"index {hexadecimal[:7]}..{hexadecimal[7:14]} 100644",
            f"https://example.com/docs/{id}/page-{random.randrange(99)}#part",
            f"2026-01-02T03:04:{random.randrange(60):02}.123456Z",
            f"file {name}.png, md5 {hexadecimal[:32]}",
            f"{folder}/{name}/{hexadecimal[:8]}/{name}_{version}.txt",
            f"data:image/png;base64,{coded}",
            coded, "\n".join(coded[at : at + 76] for at in range(0, len(coded), 76)),
            f"v{version}-rc.{random.randrange(9)}+build.{digits(4)}", f"{name}=={version}",
            f"{name}@^{version}",
            f"+49 {digits(3)} {digits(4)}-{digits(4)}", f"({digits(3)}) {digits(3)}-{digits(4)}",
            f"+1{digits(10)}",
            f"ISBN 978-{digits(1)}-{digits(3)}-{digits(5)}-{digits(1)}", f"978{digits(10)}",
            f"order {digits(3)}-{digits(7)}-{digits(7)}", f"order_id={digits(12)}", f"ORD-2026-{digits(6)}",
            f"invoice {digits(16)}", f"ts={random.randrange(10**18, 2 * 10**18)}",
            f"{random.randrange(10**12, 2 * 10**12)} {random.random()} {random.random()}",
        ]  # fmt: skip
    return random.sample(lines_of_this_repository(), count - len(made)) + made


def test_harmless_strings_stay() -> None:
    strings = harmless(Random(21 + COUNT.seed), COUNT.harmless_strings)
    masked = [(text, mask_secrets(text)) for text in strings if mask_secrets(text) != text]
    assert len(strings) == COUNT.harmless_strings
    assert len(masked) <= len(strings) * 0.005, masked


@pytest.mark.parametrize(
    "text",
    [
        "password: str = Field(...)", "def login(user: str, password: Password) -> None:",
        "token: AbstractTokenizer", "The password: must be at least eight characters",
        "password = getpass()", "self.password = config.password",
        "if token == 'identifier':", "password=$DB_PASSWORD", "--token TOKEN", "bearer sessions are tokens",
        "https://git@github.com/a/b.git", "https://user1234@host/x", "AsyncOpenAIWithRawResponse",
        "docker run -p 8080:80 image", "curl -u https://example.com",
        "lib/python3.11/site-packages/x86_64_linux", "the password is required", "The token is wrong.",
        "password is hashed, the secret was rotated", "| password | string | the password |",
        "key: Ed25519PrivateKey | X25519PrivateKey", "twelve words: about above absent absorb able in all",
        "4111111111111112", "1764380000000000000", "978-3-16-148410-0", "pass: 120 of 120",
    ],
)  # fmt: skip
def test_code_and_prose_stay(text: str) -> None:
    assert mask_secrets(text) == text


def test_the_argument_after_a_secret_flag() -> None:
    assert without_secrets(["x", "--password", "open", "--n", "1"]) == [
        "x", "--password", "[redacted:secret]", "--n", "1"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "{name}: {words}\n", "{name}: '{words}'\n", '{{"{name}": "{words}"}}', "**{name}:** {words}",
        "the {name} is {words}.",
        '{{"a": "{{\\"{name}\\": \\"{words}\\"}}"}}', "{name} for staging is {words}",
        "the {name} is {words}. Keep it", "Use {name} `{words}` here", "| **{name}** | `{words}` |",
        "'{words}' is the {name}", "curl -H '{name}: {words}' x", "connect('host=a {name}={words}')",
        '[{{"name": "{name}", "value": "{words}"}}]', "- name: {name}\n  value: {words}\n",

        "DB_{name} = '{words}'",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["password", "Passphrase", "PGPASSWORD"])
def test_letters_that_a_name_gives_away(name: str, text: str) -> None:
    words = "letme" + "inplease"
    assert words not in mask_secrets(text.format(name=name, words=words))


def test_digits_that_a_name_gives_away() -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    for text in (
        "secret key: {}",
        "SECRET_KEY_BASE={}",
        "signing key = {}",
        "the secret {}",
        "private key: 0x{}",
    ):
        assert mask_secrets(text.format(digest)) == text.replace("0x", "").format(MASK)
    for text in ("{}", "sha256 {}", "commit {}", "key {} of the cache"):
        assert mask_secrets(text.format(digest)) == text.format(digest)


@pytest.mark.parametrize(
    "text", ["{}", "- {}", '"{}",', "\\n{}\\n", "PHRASE='{}'", "a {} b", "wallet: {} (keep it)"], ids=repr
)
@pytest.mark.parametrize("gap", [" ", ", ", "\n", "\\n", "%20", '", "', '\\", \\"', "\n7. ", "  "], ids=repr)
def test_phrases_of_wallets(gap: str, text: str) -> None:
    words = english_words()[::150][:13]
    shown = mask_secrets(text.format(gap.join(words)))
    assert len(words) == 13
    assert not any(word in shown for word in words[1:-1])
    assert mask_secrets(gap.join(words[:11])) == gap.join(words[:11])


def test_secrets_that_are_no_texts() -> None:
    card, words = int("4" + "1" * 15), english_words()[:12]
    value = {"n": card, "m": card + 1, "password": 20301, "token": 7, "words": words, "few": words[:11]}
    shown = {**value, "n": MASK, "password": MASK, "words": [MASK] * 12}
    assert without_secrets(value) == shown
    assert mask_value(value) == shown


def test_the_argument_after_a_secret_flag_on_the_next_line() -> None:
    assert "open" not in mask_secrets(json.dumps(["x", "--password", "open1", "--n", "1"], indent=2))


def test_every_form_names_its_issuer_once() -> None:
    kinds = [form.kind for form in (*FORMS, *WEBHOOKS)]
    assert len(kinds) == len(set(kinds))
    assert all(form.issuer for form in (*FORMS, *WEBHOOKS))


def encodings(value: str) -> dict[str, str]:
    return {
        "plain": value,
        "reversed": value[::-1],
        "percent": quote(value, safe=""),
        "hex": value.encode().hex(),
        "base64": base64.b64encode(value.encode()).decode(),
        "urlsafe": base64.urlsafe_b64encode(f"u:{value}".encode()).decode(),
        "inside base64": base64.b64encode(f"bo:{value}!".encode()).decode(),
        "json": json.dumps(value),
        "json in json": json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False),
    }


@pytest.mark.parametrize("encoding", encodings("x"))
@settings(max_examples=COUNT.examples(12))
@given(
    value=st.text('abcdefgh123456+/ %é"\\', min_size=16, max_size=40).filter(lambda text: len(set(text)) > 9)
)
def test_known_values_in_any_encoding(encoding: str, value: str) -> None:
    encoded = encodings(value)[encoding]
    shown = SecretValues([value]).masked(f"a {encoded} b", "[x]")
    # Of base64, the characters at the ends also depend on the neighbours; of JSON quotes stay.
    beside = 6 if "json" in encoding else 8 if "base64" in encoding or encoding == "urlsafe" else 0
    assert "[x]" in shown
    assert len(shown) <= len("a [x] b") + beside


@settings(max_examples=COUNT.examples(12))
@given(st.text("abcdefghijklm0123456789", min_size=20, max_size=30), st.integers(0, 8), st.integers(12, 20))
def test_known_values_cut_short(value: str, start: int, length: int) -> None:
    part = value[start : start + length]
    if len(part) >= 12 and all(len(set(part[at : at + 12])) >= 5 for at in range(len(part) - 11)):
        assert SecretValues([value]).masked(f"<{part}>", "[x]") == "<[x]>"


@pytest.mark.parametrize("mode", ["sanitized", "local"])
def test_secret_variables_in_bundles(mode: str) -> None:
    env = {"DEPLOY_TOKEN": "open, sesame and more", "CITY": "Amsterdam"}
    encoded = base64.b64encode(b"x" + env["DEPLOY_TOKEN"].encode()).decode()
    bundle = export_run({"id": "run_1", "task": f"try {encoded} in Amsterdam"}, mode, env=env)
    assert "[redacted:" in bundle["run"]["task"]
    assert encoded[4:16] not in bundle["run"]["task"]
    assert bundle["run"]["task"].endswith("in Amsterdam")
    assert validate_bundle(bundle) == []


def test_secret_variables_in_reports() -> None:
    run = {"id": "run_1", "status": "completed", "workflow_name": "say opensesame"}
    assert "opensesame" not in html_report(run, {"MAGIC_PASSWORD": "opensesame"})


@pytest.mark.parametrize(
    "piece",
    [
        "a_",
        "password=",
        "-a",
        "sk-",
        "eyJ",
        "A",
        "://",
        '\\"password\\":',
        "curl ",
        "%41",
        "aB3",
        "login a ",
        "a:1234:",
        "abandon ",
        "4111 ",
        "secret is ",
        "password for a ",
        "name: token\n ",
        "'x' is the a ",
        "| token ",
        "| `token` | `",
        "iVBORw0KGgoAAAANSUhEUgAA\n",
    ],
)
def test_time_is_linear(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * size
        start = time.process_time()
        mask_secrets(text)
        return time.process_time() - start

    assert_linear(seconds, 250)


def test_patterns_of_named_secrets_are_compiled_for_texts_with_a_name_only() -> None:
    code = """
import re
from harnpy.formats.secrets.masking import mask_secrets
compiled, make = [], re.compile
re.compile = lambda *arguments: compiled.append(arguments) or make(*arguments)
mask_secrets("/home/ada/notes.txt")
print(len(compiled))
mask_secrets("password: hunter2hunter")
print(len(compiled) > 10)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "True"]
