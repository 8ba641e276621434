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
    """A token with the claims, signed by `ES256` or `RS256` with a private key in PEM."""
    if private_key is ABSENT or surplus:
        raise RuntimeFault("jwt_sign: requires 3 arguments: alg, claims, private_key")
    _expect("alg", alg, str, "a string")
    _expect("claims", claims, dict, "a dict")
    _expect("private_key", private_key, str, "a PEM string")
    return tokens.signed(alg, to_json(claims, paced=vm.paced), private_key)


@builtin("jwt_verify(alg: string, token: string, key: string) -> dict", family="crypto", counted=True)
def jwt_verify(vm: Vm, alg: Value = ABSENT, token: Value = ABSENT, key: Value = ABSENT) -> dict[str, Value]:
    """`{valid: true, claims}` of a token; throws for one that isn't valid under the key.

    `key`: a shared secret for `HS256`, a public key in PEM for `ES256` and `RS256`. Times in the claims
    (`exp`, `nbf`) aren't looked at.
    """
    if not all(type(argument) is str for argument in (alg, token, key)):
        raise Thrown("jwt_verify: expected (alg, token, key)")
    return {"valid": True, "claims": tokens.verified(alg, token, key)}


def _expect(name: str, value: Value, kind: type, words: str) -> None:
    if type(value) is not kind:
        raise RuntimeFault(f"jwt_sign: {name} must be {words}, got {type_name(value)}")
