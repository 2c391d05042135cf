"""People: who is asking, what they may do, and how they come and go.

Knows sessions and accounts as they are asked for over HTTP. Must not know what anybody does once they are in.
"""

import base64
import binascii
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from jackfield.codec.redfish import EXTENDED_INFO, SESSIONS, TOKEN_HEADER
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import Desk
from jackfield.fabric_manager.faces.redfish import accounts, documents
from jackfield.fabric_manager.faces.redfish.accounts import OWNER, Account, Accounts, Privilege, Role
from jackfield.fabric_manager.faces.redfish.documents import ACCOUNTS
from jackfield.fabric_manager.faces.redfish.names import FACE
from jackfield.fabric_manager.faces.redfish.patches import nothing_to_do, others, wrong
from jackfield.fabric_manager.faces.redfish.protocol import (
    Document,
    Message,
    Refusal,
    answer,
    check_match,
    missing,
    nothing,
    read,
    refusal,
    tagged,
)
from jackfield.fabric_manager.faces.redfish.sessions import SESSIONS_MAX, Sessions
from jackfield.fabric_manager.faults import Call

BASIC: Final = "basic"
"""Who asks without a session, for those who tell clients apart."""


class Who(msgspec.Struct, frozen=True):
    """Somebody who asks."""

    account: Account
    session: str = ""

    @property
    def client(self) -> str:
        """What tells one client from another."""
        return self.session or f"{BASIC} {self.account.user}"


class People:
    """Those who come in."""

    def __init__(self, known: Accounts, sessions: Sessions) -> None:
        self.accounts = known
        self.sessions = sessions
        self.key = Secret("")
        """What the manager's door opens to; known once somebody knocks."""

    def who(self, request: web.Request) -> Who | None:
        """Return who is asking; nobody if that is not proved."""
        session = self.sessions.proved(request.headers.get(TOKEN_HEADER, ""))
        if session is not None:
            account = self.accounts.get(session.user)
            return Who(account, session.id) if account is not None and account.enabled else None
        user, password = _credentials(request)
        found = self.accounts.proved(user, password, self.key) if user else None
        return Who(found) if found is not None else None

    def known(self, request: web.Request) -> Who:
        """Return who is asking, of those whom the door let in. Raises Refusal."""
        found = self.who(request)
        if found is None:  # it ended while the body came
            raise refusal(HTTPStatus.UNAUTHORIZED, "NoValidSession", "The session has ended.")
        return found

    def check(self, request: web.Request, privilege: Privilege, user: str = "") -> Who:
        """Refuse who may not do this; with `user`, whoever is that one may."""
        found = self.known(request)
        if not found.account.may(privilege) and found.account.user != user:
            words = f"{found.account.user} is {found.account.role}, and this takes {privilege}."
            raise refusal(HTTPStatus.FORBIDDEN, "InsufficientPrivilege", words)
        return found


class Reception:
    """Log in, log out, accounts."""

    def __init__(self, desk: Desk, people: People) -> None:
        self._desk = desk
        self._people = people
        self._accounts = people.accounts
        self._sessions = people.sessions

    # --- sessions

    async def log_in(self, request: web.Request, _: str) -> web.Response:
        """Open a session."""
        body = read(request, await self._desk.body(request))
        await self._desk.meet(request, Call(FACE, "token"))
        user, password = (_text(body, name) for name in ("UserName", "Password"))
        found = self._accounts.proved(user, password, self._people.key)
        if found is None:
            raise refusal(HTTPStatus.UNAUTHORIZED, "NoValidSession", "User name or password is not right.")
        if self._sessions.full:
            words = f"There are {SESSIONS_MAX} sessions already."
            raise refusal(HTTPStatus.SERVICE_UNAVAILABLE, "SessionLimitExceeded", words)
        made, token = self._sessions.open(found.user)
        headers = {"Location": f"{SESSIONS}/{made.id}", TOKEN_HEADER: token}
        return answer(tagged(documents.session(made)), HTTPStatus.CREATED, headers)

    async def log_out(self, request: web.Request, name: str) -> web.Response:
        """End a session: one's own, or with the privilege anybody's."""
        session = self._sessions.get(name)
        if session is None:
            raise missing(request.path)
        self._people.check(request, Privilege.CONFIGURE_MANAGER, session.user)
        self._sessions.close(name)
        return nothing()

    # --- accounts

    async def create(self, request: web.Request, _: str) -> web.Response:
        """Make an account."""
        body = read(request, await self._desk.body(request))
        self._people.check(request, Privilege.CONFIGURE_USERS)
        user, password, role = (_text(body, name) for name in ("UserName", "Password", "RoleId"))
        known = documents.account(OWNER)
        unknown = [*others(body, known, "UserName", "Password", "RoleId", "Enabled")]
        if unknown:
            raise Refusal(HTTPStatus.BAD_REQUEST, *unknown)
        if accounts.wrong_name(user):
            raise wrong("UserName", "1 to 64 letters, digits, dots, hyphens and underscores")
        if self._accounts.get(user) is not None:
            words = f"There is an account {user} already."
            raise refusal(
                HTTPStatus.BAD_REQUEST, "ResourceAlreadyExists", words, "ManagerAccount", "UserName", user
            )
        if len([*self._accounts]) > accounts.ACCOUNTS_MAX:
            words = f"There are {accounts.ACCOUNTS_MAX} accounts already."
            raise refusal(HTTPStatus.BAD_REQUEST, "CreateLimitReachedForResource", words)
        changed = _changed(Account(user, Role.READ_ONLY), {**body, "RoleId": role})
        made = self._accounts.put(changed, _password(password))
        headers = {"Location": f"{ACCOUNTS}/{made.user}"}
        return answer(tagged(documents.account(made)), HTTPStatus.CREATED, headers)

    async def change(self, request: web.Request, user: str) -> web.Response:
        """Change an account: role and state with the privilege, one's own password without."""
        body = read(request, await self._desk.body(request))
        account = self._known(request)
        who = self._people.check(request, Privilege.CONFIGURE_USERS, user)
        shown = tagged(documents.account(account))
        check_match(request, shown)
        writable = (
            ("Password", "RoleId", "Enabled") if who.account.may(Privilege.CONFIGURE_USERS) else ("Password",)
        )
        messages = [*others(body, shown, *(() if account is OWNER else writable))]
        wanted = {name: body[name] for name in writable if name in body and account is not OWNER}
        if not wanted:
            raise nothing_to_do(messages)
        password = _password(_text(wanted, "Password")) if "Password" in wanted else ""
        made = self._accounts.put(_changed(account, wanted), password)
        if password:
            self._end(user, but=who.session)
        return answer(_told(tagged(documents.account(made)), messages))

    async def remove(self, request: web.Request, user: str) -> web.Response:
        """Remove an account, and with it its sessions."""
        account = self._known(request)
        self._people.check(request, Privilege.CONFIGURE_USERS)
        check_match(request, tagged(documents.account(account)))
        if account is OWNER:
            words = f"{user} is whoever knows the manager's token, and stays."
            raise refusal(HTTPStatus.FORBIDDEN, "InsufficientPrivilege", words)
        self._accounts.remove(user)
        self._end(user)
        return nothing()

    def _known(self, request: web.Request) -> Account:
        found = self._accounts.get(request.path.rstrip("/").rpartition("/")[2])
        if found is None:
            raise missing(request.path)
        return found

    def _end(self, user: str, but: str = "") -> None:
        for session in self._sessions:
            if session.user == user and session.id != but:
                self._sessions.close(session.id)


def _credentials(request: web.Request) -> tuple[str, str]:
    """Return user and password of HTTP Basic; nobody if there are none."""
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = base64.b64decode(shown.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password


def _text(body: Document, name: str) -> str:
    """Return a text that must be there."""
    if name not in body:
        raise refusal(HTTPStatus.BAD_REQUEST, "PropertyMissing", f"The property {name} is missing.", name)
    value = body[name]
    if not isinstance(value, str):
        raise wrong(name, "a text")
    return value


def _password(text: str) -> str:
    if accounts.wrong_password(text):
        raise wrong("Password", f"{accounts.PASSWORD_MIN} to {accounts.PASSWORD_MAX} characters")
    return text


def _changed(account: Account, wanted: Document) -> Account:
    """Return the account with role and state as wanted."""
    enabled = wanted.get("Enabled", account.enabled)
    if not isinstance(enabled, bool):
        raise wrong("Enabled", "true or false")
    role = wanted.get("RoleId", account.role)
    if role not in {*Role}:
        raise wrong("RoleId", f"one of {', '.join(Role)}")
    return msgspec.structs.replace(account, role=Role(str(role)), enabled=enabled)


def _told(document: Document, messages: list[Message]) -> Document:
    return document | ({EXTENDED_INFO: [one.document() for one in messages]} if messages else {})
