"""Tokens that a program shows for the one run that it was given (R-5).

A holding is signed with the platform's key, so that a lease that was lost is told from one that never was; what it is worth is read
from the run's row and the person's grants each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentplat.domain.errors import Unauthenticated
from agentplat.usecases.drive_externally import Holding

PREFIX = "apr_"
"""How every such token begins, so that scanners for leaked secrets find it."""

_AUDIENCE = "agentplat-run"
_KINDS = ["EdDSA"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTokens:
    """Makes and reads the tokens. key: the platform's."""

    key: Ed25519PrivateKey

    def sign(self, holding: Holding) -> str:
        """The holding as a token. It ends with the lease and not by itself."""
        claims = {"aud": _AUDIENCE, "sub": str(holding.run_id), "person": holding.person_id, "jti": holding.owner}
        return PREFIX + jwt.encode(claims, self.key, algorithm=_KINDS[0])

    def read(self, token: str) -> Holding:
        """The holding of a token. Raises Unauthenticated where it is none of ours."""
        if not token.startswith(PREFIX):
            raise Unauthenticated
        try:
            options: jwt.types.Options = {"require": ["aud", "sub", "jti"]}
            key = self.key.public_key()
            claims = jwt.decode(token.removeprefix(PREFIX), key, algorithms=_KINDS, audience=_AUDIENCE, options=options)
            return Holding(run_id=int(claims["sub"]), person_id=int(claims["person"]), owner=str(claims["jti"]))
        except (jwt.InvalidTokenError, KeyError, ValueError) as error:
            raise Unauthenticated from error
