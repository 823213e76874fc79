"""All operations of the REST API: this list is what there is. Its OpenAPI document is shipped as `openapi.json`:

python -m tailrace.doors.http.rest.operations > src/tailrace/doors/http/rest/openapi.json
"""

import sys
from typing import Final

from tailrace.doors.http.rest import bodies, clusters, consuming, groups, producing, queues, topics
from tailrace.doors.http.rest.openapi import document, written
from tailrace.doors.http.rest.operation import JSON, Answer, Call, Operation, Reply
from tailrace.doors.http.rest.service import Service


async def read_openapi(service: Service, call: Call) -> Reply:
    if not service.openapi:
        service.openapi = bodies.write(document(OPERATIONS))
    return Reply(raw=service.openapi, content_type=JSON)


OPERATIONS: Final = (
    *topics.OPERATIONS,
    *producing.OPERATIONS,
    *consuming.OPERATIONS,
    *groups.OPERATIONS,
    *queues.OPERATIONS,
    *clusters.OPERATIONS,
    Operation(
        id="readOpenApi",
        method="GET",
        path="/v1/openapi.json",
        tag="cluster",
        help="This document.",
        handler=read_openapi,
        answers={200: Answer(help="OpenAPI 3.1.", content_type=JSON)},
    ),
)

if __name__ == "__main__":
    sys.stdout.write(written(OPERATIONS))
