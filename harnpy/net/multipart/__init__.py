"""Forms with files as bodies of requests: `multipart/form-data` (RFC 7578). Spec: 04 §16.5."""
