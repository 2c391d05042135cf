"""Accounts: who may come in beside the owner of the manager's token, and what each may do.

Knows names, roles and salted digests of passwords, which outlive a restart. Must not know HTTP. The token's owner is
an administrator whom nobody can change or remove from here.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import USER
from jackfield.fabric_manager.faces.redfish.names import FACE
from jackfield.fabric_manager.store import Store

PREFIX: Final = "account/"
"""Under this name accounts are noted."""
ACCOUNTS_MAX: Final = 64
PASSWORD_MIN, PASSWORD_MAX = 12, 256
PROVED_MAX: Final = 256
"""Proofs remembered, since finding one anew takes a while."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


class Privilege(StrEnum):
    """What somebody may do."""

    LOGIN = "Login"
    CONFIGURE_MANAGER = "ConfigureManager"
    CONFIGURE_USERS = "ConfigureUsers"
    CONFIGURE_COMPONENTS = "ConfigureComponents"
    CONFIGURE_SELF = "ConfigureSelf"


class Role(StrEnum):
    """What somebody is; the three that the specification has."""

    ADMINISTRATOR = "Administrator"
    OPERATOR = "Operator"
    READ_ONLY = "ReadOnly"


PRIVILEGES: Final[Mapping[Role, tuple[Privilege, ...]]] = {
    Role.ADMINISTRATOR: tuple(Privilege),
    Role.OPERATOR: (Privilege.LOGIN, Privilege.CONFIGURE_COMPONENTS, Privilege.CONFIGURE_SELF),
    Role.READ_ONLY: (Privilege.LOGIN, Privilege.CONFIGURE_SELF),
}


class Account(msgspec.Struct, frozen=True):
    """An account, as it is noted."""

    user: str
    role: Role
    salt: str = ""
    digest: str = ""
    enabled: bool = True

    def may(self, privilege: Privilege) -> bool:
        """Whether its role has a privilege."""
        return privilege in PRIVILEGES[self.role]


OWNER: Final = Account(USER, Role.ADMINISTRATOR)
"""Whoever knows the manager's token."""


class Accounts:
    """All accounts, the owner's first, then in the order of their names."""

    def __init__(self, store: Store) -> None:
        self._store = store
        noted = store.notes(FACE)
        known = [msgspec.json.decode(noted[key], type=Account) for key in noted if key.startswith(PREFIX)]
        self._accounts = {OWNER.user: OWNER, **{one.user: one for one in known}}
        self._proved: dict[str, str] = {}

    def __iter__(self) -> Iterator[Account]:
        yield from tuple(self._accounts.values())

    def get(self, user: str) -> Account | None:
        """Return somebody's account."""
        return self._accounts.get(user)

    def proved(self, user: str, password: str, key: Secret) -> Account | None:
        """Return the account that a password proves."""
        if user == OWNER.user:
            shown, known = password.encode(errors="replace"), key.reveal().encode()
            return OWNER if hmac.compare_digest(shown, known) else None
        account = self._accounts.get(user)
        if account is None or not account.enabled or len(password) > PASSWORD_MAX:
            return None
        seen = hashlib.sha256(f"{user}:{password}".encode(errors="replace")).hexdigest()
        if self._proved.get(seen) != user:
            if not hmac.compare_digest(_digest(password, account.salt), account.digest):
                return None
            if len(self._proved) >= PROVED_MAX:
                self._proved.clear()
            self._proved[seen] = user
        return account

    def put(self, account: Account, password: str = "") -> Account:
        """Write an account down, with a new password if one is given."""
        if password:
            salt = secrets.token_hex(16)
            account = msgspec.structs.replace(account, salt=salt, digest=_digest(password, salt))
        self._accounts[account.user] = account
        self._proved.clear()
        self._store.note(FACE, f"{PREFIX}{account.user}", msgspec.json.encode(account))
        return account

    def remove(self, user: str) -> None:
        """Remove an account."""
        del self._accounts[user]
        self._proved.clear()
        self._store.note(FACE, f"{PREFIX}{user}", None)


def wrong_name(user: str) -> bool:
    """Whether nobody can be called so."""
    return _NAME.fullmatch(user) is None


def wrong_password(password: str) -> bool:
    """Whether a password is too short, or too long to be one."""
    return not PASSWORD_MIN <= len(password) <= PASSWORD_MAX


def _digest(password: str, salt: str) -> str:
    made = hashlib.scrypt(password.encode(errors="replace"), salt=bytes.fromhex(salt), n=1 << 12, r=8, p=1)
    return made.hex()
