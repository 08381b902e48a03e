"""The description of the API: whole enough for generated clients, and true, as far as many odd requests can tell."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from tests.service.conftest import Served
from tidings.service.model import Role

# Streams do not end, and without a driver the service is never ready.
LEFT_OUT = ("read_packets", "stream_subscription", "stream_subscriptions", "get_ready")
VERBS = frozenset(
    "Add Call Cancel Change Check Complete Edit End Explain Export Fetch Follow Get List Match Pause Publish Read Remove Renew"
    " Replace Request Resume Revoke Send Set Stop Stream Try".split()
)
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.fixture(scope="module")
def document(served: Served) -> dict[str, Any]:
    answer = served.http.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def test_it_is_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    OPENAPI_31_VALIDATOR.validate(document)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    found = set(re.findall(r"'\$ref': '#/components/schemas/([^']+)'", str(document)))
    assert found <= set(document["components"]["schemas"])
    assert "HTTPValidationError" not in found


def test_every_operation_can_be_generated(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names)) > 25
    for path, method, operation in operations(document):
        assert re.fullmatch(r"[a-z][a-z_]*", operation["operationId"])
        assert operation["summary"].split()[0] in VERBS, (method, path, "a summary begins with a verb")
        assert "?" not in operation["summary"]
        assert len(operation["tags"]) == 1
        assert operation["tags"][0] in {tag["name"] for tag in document["tags"]}
        good = [status for status in operation["responses"] if status.startswith("2")]
        assert good, (method, path)
        for status in good:
            content = operation["responses"][status].get("content")
            assert status == "204" or content, (method, path)
            for media_type, described in (content or {}).items():
                assert "schema" in described, (method, path, media_type)
        problem = operation["responses"]["default"]["content"]["application/problem+json"]
        assert problem["schema"]["$ref"].endswith("/ProblemDetails")


def test_models_have_names_and_tokens_a_scheme(document: dict[str, Any]) -> None:
    assert {"Subscription", "SubscriptionPage", "Notification", "Receipt"} <= set(
        document["components"]["schemas"]
    )
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path, _, operation in operations(document):
        assert ("security" in operation) == path.startswith(("/api/", "/xmlrpc")), path


@pytest.mark.parametrize(
    ("phases", "examples", "seconds"),
    [("examples,fuzzing", 2, 8), pytest.param("examples,coverage,fuzzing", 20, 120, marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_nothing_that_is_sent_makes_it_fail(served: Served, phases: str, examples: int, seconds: int) -> None:
    """schemathesis: what the description allows, and what it forbids; no 500, and answers as described."""
    _, secret = served.service.access.grant(
        "odd requests", Role.ADMIN, subscriptions=10_000, requests_per_second=1e5, events_per_second=1e6
    )
    left_out = [part for name in LEFT_OUT for part in ("--exclude-operation-id", name)]
    run = subprocess.run(
        [
            *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"),
            f"{served.http.base_url}/openapi.json".replace("//openapi", "/openapi"),
            *("--phases", phases, "--max-examples", str(examples), "--checks", CHECKS),
            *("-H", f"Authorization: Bearer {secret}", "--generation-with-security-parameters", "false"),
            *("--generation-deterministic", "--no-shrink", "--no-color"),
            *("--suppress-health-check", "filter_too_much"),  # few texts are bodies that XML-RPC forbids
            *("--max-time", str(seconds), "--warnings", "off", *left_out),
        ],
        capture_output=True,
        text=True,
        timeout=280,
    )
    said = re.sub(r"\S{300,}", "…", run.stdout + run.stderr)[-6_000:]
    assert run.returncode == 0, said
    assert "No test cases were generated" not in said
    assert served.http.get("/health").status_code == 200
