"""The writers that Spark asks for: one for a batch, one for every micro-batch of a stream.

Spark builds a writer on the driver, before any task runs. At that point the writer commits a batch that an earlier
driver decided but did not finish.
"""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.sink.committing import abort_all, commit_all, complete_decided
from tailrace.pipeline.sink.options import WriteOptions
from tailrace.pipeline.sink.rows import check_schema
from tailrace.pipeline.sink.write_task import TaskCommitMessage, current_attempt, write_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

Messages = list[Any]


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: WriteOptions, schema: "StructType", *, overwrite: bool) -> None:
        if overwrite:
            raise PipelineFailed('a topic cannot be overwritten: use mode("append")')
        check_schema(schema, options.topic)
        complete_decided(options)
        self._options = options
        self._job = options.job_id or uuid.uuid4().hex  # one id per write, sent to the tasks with the writer

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskCommitMessage:
        return write_rows(self._options, iterator, current_attempt(self._job))

    def commit(self, messages: Messages) -> None:
        commit_all(self._options, messages)

    def abort(self, messages: Messages) -> None:
        abort_all(self._options, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: WriteOptions, schema: "StructType") -> None:
        check_schema(schema, options.topic)
        complete_decided(options)
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskCommitMessage:
        return write_rows(self._options, iterator, current_attempt(""))

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 Spark's name
        commit_all(self._options, messages)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        abort_all(self._options, messages)
