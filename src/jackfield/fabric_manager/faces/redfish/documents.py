"""The documents of the service itself, one function each: the way in, schemas, sessions, tasks.

Knows the schemas' words, and what all documents have. Must not know HTTP, nor change anything.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from jackfield import __version__
from jackfield.codec.redfish import (
    COMPOSITION,
    COUNT,
    ID,
    ROOT,
    SERVICE_ROOT,
    SESSIONS,
    SYSTEMS,
    TASK_MONITORS,
    TASKS,
    TYPE,
    Health,
    TaskState,
)
from jackfield.fabric_manager.faces.redfish import accounts, queries
from jackfield.fabric_manager.faces.redfish.accounts import Account, Role
from jackfield.fabric_manager.faces.redfish.names import Names
from jackfield.fabric_manager.faces.redfish.protocol import Document, Message
from jackfield.fabric_manager.faces.redfish.sessions import Session
from jackfield.fabric_manager.faces.redfish.tasks import Task
from jackfield.model.names import Seconds

ACCOUNT_SERVICE: Final = f"{ROOT}/AccountService"
ACCOUNTS: Final = f"{ACCOUNT_SERVICE}/Accounts"
ROLES: Final = f"{ACCOUNT_SERVICE}/Roles"
CHASSIS: Final = f"{ROOT}/Chassis"
FABRICS: Final = f"{ROOT}/Fabrics"
SCHEMAS: Final = f"{ROOT}/JsonSchemas"
SESSION_SERVICE: Final = f"{ROOT}/SessionService"
TASK_SERVICE: Final = f"{ROOT}/TaskService"
PUBLISHED: Final = "http://redfish.dmtf.org/schemas/v1"
REDFISH_VERSION: Final = "1.20.0"

VERSIONS: Final[Mapping[str, str]] = {
    "AccountService": "v1_10_0",
    "Chassis": "v1_19_0",
    "CompositionService": "v1_2_0",
    "ComputerSystem": "v1_18_0",
    "Fabric": "v1_2_0",
    "JsonSchemaFile": "v1_1_4",
    "ManagerAccount": "v1_8_0",
    "Memory": "v1_14_0",
    "Message": "v1_1_2",
    "NetworkAdapter": "v1_8_0",
    "NetworkInterface": "v1_2_0",
    "Port": "v1_4_0",
    "Processor": "v1_14_0",
    "ResourceBlock": "v1_4_0",
    "Role": "v1_3_1",
    "ServiceRoot": "v1_17_0",
    "Session": "v1_4_0",
    "SessionService": "v1_1_8",
    "Switch": "v1_6_0",
    "Task": "v1_5_1",
    "TaskService": "v1_2_0",
    "Zone": "v1_6_0",
}
"""The schemas that are spoken, and which version of each."""
COLLECTIONS: Final = (
    "Chassis",
    "ComputerSystem",
    "Fabric",
    "JsonSchemaFile",
    "ManagerAccount",
    "Memory",
    "NetworkAdapter",
    "NetworkInterface",
    "Port",
    "Processor",
    "ResourceBlock",
    "Role",
    "Session",
    "Switch",
    "Task",
    "Zone",
)


# --- what all have


def link(path: str) -> Document:
    """Return a reference."""
    return {ID: path}


def collection(path: str, kind: str, name: str, members: Iterable[str]) -> Document:
    """Return a collection of what is at these paths."""
    links = [link(one) for one in members]
    return {
        ID: path,
        TYPE: f"#{kind}Collection.{kind}Collection",
        "Name": name,
        "Members": links,
        COUNT: len(links),
    }


def resource(path: str, kind: str, name: str) -> Document:
    """Return what every resource has."""
    return {ID: path, TYPE: f"#{kind}.{VERSIONS[kind]}.{kind}", "Id": path.rpartition("/")[2], "Name": name}


def status(state: str = "Enabled", health: Health = Health.OK) -> Document:
    """Return how something is."""
    return {"State": state, "Health": health}


def instant(at: Seconds) -> str:
    """Return a time as Redfish writes it."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(span: Seconds) -> str:
    """Return a span of time as Redfish writes it."""
    return f"PT{span:g}S"


# --- the way in


def versions() -> Document:
    """Return which versions there are."""
    return {"v1": SERVICE_ROOT}


def service_root(names: Names) -> Document:
    """Return the root."""
    return resource(SERVICE_ROOT, "ServiceRoot", "Jackfield fabric manager") | {
        "Id": "RootService",
        "RedfishVersion": REDFISH_VERSION,
        "UUID": names.uuid("service"),
        "Product": f"Jackfield {__version__}",
        "Vendor": "Jackfield",
        "ProtocolFeaturesSupported": queries.FEATURES,
        "AccountService": link(ACCOUNT_SERVICE),
        "Chassis": link(CHASSIS),
        "CompositionService": link(COMPOSITION),
        "Fabrics": link(FABRICS),
        "JsonSchemas": link(SCHEMAS),
        "SessionService": link(SESSION_SERVICE),
        "Systems": link(SYSTEMS),
        "Tasks": link(TASK_SERVICE),
        "Links": {"Sessions": link(SESSIONS)},
    }


def service_document() -> Document:
    """Return the OData service document."""
    parts = {
        "Service": SERVICE_ROOT,
        "Systems": SYSTEMS,
        "AccountService": ACCOUNT_SERVICE,
        "Chassis": CHASSIS,
        "CompositionService": COMPOSITION,
        "Fabrics": FABRICS,
        "JsonSchemas": SCHEMAS,
        "SessionService": SESSION_SERVICE,
        "Sessions": SESSIONS,
        "Tasks": TASK_SERVICE,
    }
    return {
        "@odata.context": f"{ROOT}/$metadata",
        "value": [{"name": name, "kind": "Singleton", "url": url} for name, url in parts.items()],
    }


def metadata() -> str:
    """Return which schemas are spoken, as OData describes it."""
    kinds = [*((name, f"{name}.{version}") for name, version in VERSIONS.items()), *_collection_schemas()]
    references = "".join(
        f'  <edmx:Reference Uri="{PUBLISHED}/{name}_v1.xml">\n'
        f'    <edmx:Include Namespace="{name}"/>\n'
        + (f'    <edmx:Include Namespace="{space}"/>\n' if space != name else "")
        + "  </edmx:Reference>\n"
        for name, space in sorted(kinds)
    )
    container = f"ServiceRoot.{VERSIONS['ServiceRoot']}.ServiceContainer"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">\n'
        f"{references}"
        f'  <edmx:Reference Uri="{PUBLISHED}/RedfishExtensions_v1.xml">\n'
        '    <edmx:Include Namespace="RedfishExtensions.v1_0_0" Alias="Redfish"/>\n'
        "  </edmx:Reference>\n"
        "  <edmx:DataServices>\n"
        '    <Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="Service">\n'
        f'      <EntityContainer Name="Service" Extends="{container}"/>\n'
        "    </Schema>\n"
        "  </edmx:DataServices>\n"
        "</edmx:Edmx>\n"
    )


def _collection_schemas() -> list[tuple[str, str]]:
    return [(f"{name}Collection", f"{name}Collection") for name in COLLECTIONS]


def schemas() -> Document:
    """Return the collection of schemas."""
    return collection(SCHEMAS, "JsonSchemaFile", "Schemas", (f"{SCHEMAS}/{name}" for name in VERSIONS))


def schema(name: str) -> Document:
    """Return where a schema is published."""
    return resource(f"{SCHEMAS}/{name}", "JsonSchemaFile", f"Schema of {name}") | {
        "Schema": f"#{name}.{name}",
        "Languages": ["en"],
        "Location": [{"Language": "en", "PublicationUri": f"{PUBLISHED}/{name}.json"}],
    }


# --- accounts


def account_service() -> Document:
    """Return the account service."""
    return resource(ACCOUNT_SERVICE, "AccountService", "Accounts") | {
        "ServiceEnabled": True,
        "LocalAccountAuth": "Enabled",
        "MinPasswordLength": accounts.PASSWORD_MIN,
        "MaxPasswordLength": accounts.PASSWORD_MAX,
        "Accounts": link(ACCOUNTS),
        "Roles": link(ROLES),
        "Status": status(),
    }


def account(one: Account) -> Document:
    """Return an account; its password stands nowhere."""
    return resource(f"{ACCOUNTS}/{one.user}", "ManagerAccount", f"Account of {one.user}") | {
        "AccountTypes": ["Redfish"],
        "Enabled": one.enabled,
        "Password": None,
        "RoleId": one.role,
        "UserName": one.user,
        "Links": {"Role": link(f"{ROLES}/{one.role}")},
    }


def role(one: Role) -> Document:
    """Return what a role may do."""
    return resource(f"{ROLES}/{one}", "Role", f"Role {one}") | {
        "AssignedPrivileges": [*accounts.PRIVILEGES[one]],
        "IsPredefined": True,
        "RoleId": one,
    }


# --- sessions and tasks


def session_service(lasts: Seconds) -> Document:
    """Return the session service."""
    return resource(SESSION_SERVICE, "SessionService", "Sessions") | {
        "ServiceEnabled": True,
        "SessionTimeout": int(lasts),
        "Sessions": link(SESSIONS),
        "Status": status(),
    }


def session(one: Session) -> Document:
    """Return a session; its token stands nowhere."""
    return resource(f"{SESSIONS}/{one.id}", "Session", f"Session of {one.user}") | {
        "UserName": one.user,
        "Password": None,
        "SessionType": "Redfish",
        "CreatedTime": instant(one.created),
    }


def task_service() -> Document:
    """Return the task service."""
    return resource(TASK_SERVICE, "TaskService", "Tasks") | {
        "ServiceEnabled": True,
        "CompletedTaskOverWritePolicy": "Oldest",
        "LifeCycleEventOnTaskStateChange": False,
        "Tasks": link(TASKS),
        "Status": status(),
    }


def task(one: Task, messages: Iterable[Message]) -> Document:
    """Return a task."""
    state = (TaskState.EXCEPTION if one.failures else TaskState.COMPLETED) if one.over else TaskState.RUNNING
    made = resource(f"{TASKS}/{one.id}", "Task", f"{one.method} {one.target}") | {
        "TaskState": state,
        "TaskStatus": Health.CRITICAL if one.failures else Health.OK,
        "StartTime": instant(one.started),
        "Messages": [message.document() for message in messages],
        "Payload": {"HttpOperation": one.method, "TargetUri": one.target},
    }
    return made | (
        {"EndTime": instant(one.ended), "PercentComplete": 100}
        if one.over
        else {"TaskMonitor": f"{TASK_MONITORS}/{one.id}"}
    )
