"""DMTF's validators find what docs/fabric-manager.md says they find, and nothing else."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import redfish

from judges.conftest import Service

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "fabric-manager.md").read_text()
SCHEMAS = os.environ.get("REDFISH_SCHEMAS", "")
"""A folder with the schemas of DSP8010, for those who have it; without it little can be said of documents."""
NO_SCHEMA = "Schema Error: Unable to locate the schema definition for"


def listed(heading: str) -> set[str]:
    """Return the findings that the page has rows for, under a heading."""
    _, found, rest = PAGE.partition(f"\n### {heading}\n")
    assert found, f"the heading {heading!r} is gone"
    part = re.split(r"\n##", rest)[0]
    return {
        one
        for row in re.findall(r"^\| (`.*`) \| \S", part, re.MULTILINE)
        for one in re.findall(r"`(\w+)`", row)
    }


def run(folder: Path, module: str, service: Service, *options: str) -> str:
    """Run a validator to its end; return what it printed."""
    program = f"from {module}.console_scripts import main; main()"
    command = (sys.executable, "-c", program, "--user", service.user, "--password", service.password)
    environment = {**os.environ, "REQUESTS_CA_BUNDLE": str(service.authority)}
    done = subprocess.run(
        (*command, "--rhost", service.url, *options),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_protocol_validator_finds_what_is_listed_and_nothing_else(
    tmp_path: Path, service: Service
) -> None:
    found, told = protocol(tmp_path / "first", service)
    if CHANCE in found["WARN"]:
        found, told = protocol(tmp_path / "second", service)
    assert found["FAIL"] | found["WARN"] == listed("What the protocol validator objects to"), told
    untested = found["NOT_TESTED"] - found["PASS"] - found["FAIL"] - found["WARN"]
    assert untested == listed("What the protocol validator could not judge")
    assert len(found["PASS"]) > 50


def protocol(folder: Path, service: Service) -> tuple[dict[str, set[str]], str]:
    """Run the protocol validator; return what it found, and its objections in its own words."""
    folder.mkdir()
    options = ("--ca-bundle", str(service.authority), "--avoid-http-redirect", "--report-type", "tsv")
    printed = run(folder, "redfish_protocol_validator", service, *options)
    (report,) = folder.glob("reports/*.tsv")
    rows = [*csv.DictReader(report.read_text().splitlines(), delimiter="\t")]
    found = {result: {row["Assertion"] for row in rows if row["Result"] == result} for result in RESULTS}
    told = "\n".join("  ".join(row.values()) for row in rows if row["Result"] in {"FAIL", "WARN"})
    return found, told or printed


CHANCE = "RESP_HEADERS_X_AUTH_TOKEN"
"""Two tests of one token's bits, at 1 % each: of fifty good tokens one does not look random to it."""
RESULTS = ("PASS", "FAIL", "WARN", "NOT_TESTED")


def test_the_service_validator_reads_every_resource_and_objects_to_none(
    tmp_path: Path, service: Service
) -> None:
    client = redfish.redfish_client(
        base_url=service.url, username=service.user, password=service.password, cafile=str(service.authority)
    )
    client.login(auth="session")
    begun = client.post(
        "/redfish/v1/Systems/worker-1/Actions/ComputerSystem.AddResourceBlock",
        body={"ResourceBlock": {"@odata.id": "/redfish/v1/CompositionService/ResourceBlocks/a100-1"}},
    )
    assert begun.status == 202  # so that there is a task to be judged
    schemas = SCHEMAS or str(tmp_path / "schemas")
    options = ("--skipschema", "--schema_directory", schemas, "--logdir", str(tmp_path / "logs"))
    printed = run(tmp_path, "redfish_service_validator", service, *options)
    (log,) = tmp_path.glob("logs/*/*.log")
    lines = log.read_text().splitlines()
    visited = {one.partition("Validating ")[2].removesuffix("...") for one in lines if "Validating /" in one}
    assert {SYSTEM, BLOCK, begun.dict["@odata.id"]} <= visited, printed
    objections = [one for one in lines if " - FAIL" in one or " - CRITICAL - " in one or " - WARN - " in one]
    if not SCHEMAS:
        unknown = [one for one in objections if NO_SCHEMA in one]
        assert len(unknown) == len(visited), "without schemas it says of each that it cannot judge it"
        objections = [one for one in objections if NO_SCHEMA not in one]
    assert objections == []
    client.logout()


SYSTEM = "/redfish/v1/Systems/worker-1"
BLOCK = "/redfish/v1/CompositionService/ResourceBlocks/a100-1"


@pytest.mark.parametrize("heading", ["objects to", "could not judge"])
def test_every_finding_that_is_left_has_its_reason(heading: str) -> None:
    assert listed(f"What the protocol validator {heading}")
