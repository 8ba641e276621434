"""What a secret looks like, in one place: whatever is written for others is masked by these rules. Pure.

    mask_secrets(text) -> text                the rules for any text: `masking`
    SecretValues(values).masked(text, mask)   known secret values in any encoding: `known_values`
    mask_value(value) -> value                the same for JSON values: `values`
    is_secret_name(key)                       names whose values are secret: `names`

`forms` is the table of keys that can be recognised by themselves, with their issuers. `contexts` has the
rules for values that their surroundings give away, `encodings` finds both inside other encodings, and
`randomness` finds what nothing names. In doubt, mask: a masked word can be guessed, a leaked key can't be
taken back.
Spec: 08 §17.
"""
