"""The labels that scans give to commands and to what they print. Spec: 02 §28."""

from __future__ import annotations

CREDENTIAL_FILE_READ = "credential_file_read"
CURL_PIPE_SHELL = "curl_pipe_shell"
DENY_PATTERN = "deny_pattern"
DESTRUCTIVE = "destructive"
GIT_FORCE_PUSH = "git_force_push"
NETWORK_EXFIL = "network_exfil"
OUTSIDE_WORKSPACE = "outside_workspace"
PACKAGE_INSTALL = "package_install"
PROCESS_KILL = "process_kill"
SUDO = "sudo"
WRITE_INTENT = "write_intent"

#: Those of commands, in the order in which scans and messages list them.
LABELS = (
    CREDENTIAL_FILE_READ,
    CURL_PIPE_SHELL,
    DENY_PATTERN,
    DESTRUCTIVE,
    GIT_FORCE_PUSH,
    NETWORK_EXFIL,
    OUTSIDE_WORKSPACE,
    PACKAGE_INSTALL,
    PROCESS_KILL,
    SUDO,
    WRITE_INTENT,
)

CREDENTIAL_OUTPUT = "credential_output"
ERROR_OUTPUT = "error_output"
PERMISSION_BOUNDARY_HIT = "permission_boundary_hit"

#: Words that tell of credentials, in paths and in what commands print.
CREDENTIAL_WORDS = (
    ".env", "id_rsa", "id_ed25519", ".aws/credentials", ".npmrc", ".netrc", "credentials", "secret", "token",
    "api_key", "apikey",
)  # fmt: skip
