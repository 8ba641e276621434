"""JSON Web Tokens. Spec: 04 §16.3."""

from __future__ import annotations

from harnpy.crypto import tokens
from harnpy.text.json.writer import to_json
from harnpy.vm.declare.builtin import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault, Thrown
from harnpy.vm.values.objects import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("jwt_sign(alg: string, claims: dict, private_key: string) -> string", family="crypto", counted=True)
def jwt_sign(
    vm: Vm, alg: Value = ABSENT, claims: Value = ABSENT, private_key: Value = ABSENT, *surplus: Value
) -> str:
    r"""A token with the claims, signed by `ES256` or `RS256` with a private key in PEM.

    Example:
        // harnpy: allow literal-secret
        let lines = [
          "-----BEGIN PRIVATE KEY-----",
          "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgya+p2EW6dRZrXCFX",
          "Z7HWk05Qw9s26JsSe4piKxIPZyGhRANCAARg/tS6JVqdMclh63TGNW1owEm4kjth",
          "+mzmaWIuYPKftnkD/hAIuLyZpBrp6VYovGTy8bIMLX6fUXejwpTURiKZ",
          "-----END PRIVATE KEY-----",
        ]
        let token = jwt_sign("ES256", {sub: "ada"}, lines.join("\n"))
        base64url_decode(token.split(".")[1])  // "{\"sub\":\"ada\"}"
    """
    if private_key is ABSENT or surplus:
        raise RuntimeFault("jwt_sign: requires 3 arguments: alg, claims, private_key")
    _expect("alg", alg, str, "a string")
    _expect("claims", claims, dict, "a dict")
    _expect("private_key", private_key, str, "a PEM string")
    return tokens.signed(alg, to_json(claims, paced=vm.paced), private_key)


@builtin("jwt_verify(alg: string, token: string, key: string) -> dict", family="crypto", counted=True)
def jwt_verify(vm: Vm, alg: Value = ABSENT, token: Value = ABSENT, key: Value = ABSENT) -> dict[str, Value]:
    r"""`{valid: true, claims}` of a token; throws for one that isn't valid under the key.

    `key`: a shared secret for `HS256`, a public key in PEM for `ES256` and `RS256`. Times in the claims
    (`exp`, `nbf`) aren't looked at.

    Example:
        let content = base64url_encode("{\"alg\":\"HS256\"}") + "." + base64url_encode("{\"sub\":\"ada\"}")
        let mac = base64url_encode(bytes_from_hex(hmac_sha256("secret", content)))
        jwt_verify("HS256", content + "." + mac, "secret").claims  // {sub: "ada"}
    """
    if not all(type(argument) is str for argument in (alg, token, key)):
        raise Thrown("jwt_verify: expected (alg, token, key)")
    return {"valid": True, "claims": tokens.verified(alg, token, key)}


def _expect(name: str, value: Value, kind: type, words: str) -> None:
    if type(value) is not kind:
        raise RuntimeFault(f"jwt_sign: {name} must be {words}, got {type_name(value)}")
