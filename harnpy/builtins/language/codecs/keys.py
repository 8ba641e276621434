"""Ed25519 signatures and X25519 key agreement. Spec: 04 §16.3."""

from __future__ import annotations

from harnpy.builtins.language.codecs.arguments import data_of
from harnpy.crypto import keys
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("ed25519_keypair() -> dict", family="crypto")
def ed25519_keypair(vm: Vm) -> dict[str, str]:
    """A new key to sign with: `{private, public}`, each 64 hexadecimal digits.

    Example:
        len(ed25519_keypair().private)  // 64
    """
    return keys.ed25519_pair(vm.world.entropy.bytes(keys.KEY_BYTES))


@builtin('ed25519_sign(private_hex: string, message: any = "") -> string', family="crypto")
def ed25519_sign(vm: Vm, private_hex: str, message: Value) -> str:
    """The signature of the message's text, or bytes: 128 hexadecimal digits. Throws for what is no key.

    Example:
        let key = ed25519_keypair()
        ed25519_verify(key.public, "pay 5", ed25519_sign(key.private, "pay 5"))  // true
    """
    return keys.ed25519_signature(private_hex, data_of(message))


@builtin(
    'ed25519_verify(public_hex: string, message: any = "", signature_hex: string) -> bool', family="crypto"
)
def ed25519_verify(vm: Vm, public_hex: str, message: Value, signature_hex: str) -> bool:
    """Whether the signature is that of the message's text, or bytes; false too for what is no key.

    Example:
        let key = ed25519_keypair()
        ed25519_verify(key.public, "pay 9", ed25519_sign(key.private, "pay 5"))  // false
    """
    return keys.ed25519_verifies(public_hex, data_of(message), signature_hex)


@builtin("x25519_keypair() -> dict", family="crypto")
def x25519_keypair(vm: Vm) -> dict[str, str]:
    """A new key to agree on a secret with: `{private, public}`, each 64 hexadecimal digits.

    Example:
        len(x25519_keypair().public)  // 64
    """
    return keys.x25519_pair(vm.world.entropy.bytes(keys.KEY_BYTES))


@builtin("x25519_agree(private_hex: string, peer_public_hex: string) -> string", family="crypto")
def x25519_agree(vm: Vm, private_hex: str, peer_public_hex: str) -> str:
    """The secret that both owners of the keys compute: 64 hexadecimal digits. Throws for what is no key.

    Example:
        let a = x25519_keypair()
        let b = x25519_keypair()
        x25519_agree(a.private, b.public) == x25519_agree(b.private, a.public)  // true
    """
    return keys.x25519_agreement(private_hex, peer_public_hex)
