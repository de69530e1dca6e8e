"""Signatures of audit bundles, by OpenSSH: `ssh-keygen -Y sign` and `-Y verify` with the namespace `steadygaze`.

The signature is manifest.json.sig.  It covers manifest.json, and through its SHA-256 hashes every other file.
https://man.openbsd.org/ssh-keygen.1 describes keys, signatures and the file of allowed signers.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from steadygaze.audit.manifest import Altered
from steadygaze.errors import UserError

NAMESPACE = "steadygaze"


def sign(content: bytes, key: Path) -> bytes:
    """The signature of a manifest by a private key; of a public key, by ssh-agent."""
    if not key.is_file():
        raise UserError(f"--sign {key} is not a file: it takes an SSH key, as ssh-keygen -t ed25519 makes one")
    ended = _run(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], content)
    if ended.returncode or b"BEGIN SSH SIGNATURE" not in ended.stdout:
        raise UserError(f"ssh-keygen could not sign with {key}: {_said(ended)}")
    return ended.stdout


def check(content: bytes, signature: bytes | None, signers: Path, signer: str | None = None) -> str:
    """Who signed a manifest, of those that a file allows; `signer`: who must have."""
    if not signers.is_file():
        raise UserError(
            f"--signers {signers} is not a file: it lists allowed signers, a name and a public key per line"
        )
    if signature is None:
        raise Altered("the bundle is not signed: it has no manifest.json.sig")
    with tempfile.NamedTemporaryFile(prefix="steadygaze-", suffix=".sig") as file:
        file.write(signature)
        file.flush()
        given = ["-f", str(signers), "-s", file.name]
        if signer is None:
            found = _run(["-Y", "find-principals", *given], b"")
            names = [name for name in found.stdout.decode(errors="replace").split("\n") if name]  # may hold spaces
            if found.returncode or not names:
                raise Altered(f"manifest.json.sig is by nobody that {signers} allows: {_said(found)}")
            signer = names[0]
        ended = _run(["-Y", "verify", "-n", NAMESPACE, "-I", signer, *given], content)
    if ended.returncode:
        raise Altered(f"manifest.json.sig is not a signature of this manifest by {signer!r}: {_said(ended)}")
    return signer


def _run(arguments: list[str], content: bytes) -> "subprocess.CompletedProcess[bytes]":
    program = shutil.which("ssh-keygen")
    if program is None:
        raise UserError("signatures need ssh-keygen, which is not installed: it is part of OpenSSH (openssh-client)")
    return subprocess.run([program, *arguments], input=content, capture_output=True, check=False)


def _said(ended: "subprocess.CompletedProcess[bytes]") -> str:
    lines = (ended.stderr or ended.stdout).decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {ended.returncode}")
