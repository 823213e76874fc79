"""The pipeline's exceptions. Each message says what happened, which value was wrong, and what to do."""


class PipelineFailed(RuntimeError):
    """A job failed; the base class of the pipeline's exceptions."""


class NoBrokerAvailable(PipelineFailed, ConnectionError):
    """No broker answered, or none of them could within the time allowed."""


class NoSuchTopic(PipelineFailed):
    """The topic does not exist."""


class DataLost(PipelineFailed):
    """Records that were to be read are gone from the topic."""


class RecordsDamaged(PipelineFailed):
    """Records cannot be read: the broker's data differs from what was written."""


class NotOurHistory(PipelineFailed):
    """A folder that holds no Tailrace history, or a history that another program has written into."""


class HistoryDamaged(PipelineFailed):
    """A history whose log differs from what was written."""
