"""The forms of secrets, in one place: whatever is written for others is masked by these rules. Pure.

    mask_secrets(text) -> text                the rules for any text: `masking`
    mask_value(value) -> value                the same for JSON values: `masking`
    SecretValues(values).masked(text, mask)   known secret values in any encoding: `known_values`
    is_secret_name(key)                       names whose values are secret: `names`
    kind_of_secret(text)                      secrets in the text of a program: `forms`

`forms` is the table of keys that can be recognised by themselves, with their issuers. In doubt, mask: a
masked word can be guessed, a leaked key can't be taken back.
Spec: 08 §17.
"""
