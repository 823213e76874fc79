"""The OpenAPI document: shipped as it is made, whole, and true to the operations."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tailrace.doors.http.rest
from tailrace.doors.http.rest import kinds
from tailrace.doors.http.rest.openapi import document, written
from tailrace.doors.http.rest.operation import Operation
from tailrace.doors.http.rest.operations import OPERATIONS

SHIPPED = Path(tailrace.doors.http.rest.__file__).parent / "openapi.json"
COMMAND = "python -m tailrace.doors.http.rest.operations > src/tailrace/doors/http/rest/openapi.json"


def test_the_shipped_document_is_up_to_date() -> None:
    assert SHIPPED.read_text() == written(OPERATIONS), f"an operation has changed: {COMMAND}"


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [one for inner in value.values() for one in references(inner)]
    if isinstance(value, list):
        return [one for inner in value for one in references(inner)]
    return []


def test_all_references_lead_somewhere() -> None:
    found = document(OPERATIONS)
    there = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
    assert set(references(found)) == there


def test_operations_have_names_of_their_own() -> None:
    names = [one.id for one in OPERATIONS]
    assert len(names) == len(set(names))
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.id)
def test_an_operation_declares_its_path_and_problems(operation: Operation) -> None:
    in_path = re.findall(r"\{(\w+)\}", operation.path)
    assert [one.name for one in operation.parameters if one.place == "path"] == in_path
    assert all(one.required for one in operation.parameters if one.place == "path")
    assert all(one.name == one.name.lower() for one in operation.parameters if one.place == "header")
    slugs = {kind.slug for kind in kinds.all_kinds()}
    assert set(operation.problems) <= slugs
    assert operation.help.endswith(".")


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.body is not None], ids=lambda one: one.id)
def test_the_example_of_a_body_fits(operation: Operation) -> None:
    assert operation.body is not None
    operation.body.shape.check(operation.body.example, "")


def test_the_document_is_json() -> None:
    json.dumps(document(OPERATIONS), allow_nan=False)
