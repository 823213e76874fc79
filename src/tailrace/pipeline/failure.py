"""How the pipeline fails: with a sentence that says what happened, which value was wrong, and what to do."""


class PipelineFailed(RuntimeError):
    """A job could not do what it was asked to."""


class BrokersSilent(PipelineFailed):
    """No broker answered, or none of them could within the time allowed."""


class NoSuchTopic(PipelineFailed):
    """A topic that no broker knows."""


class DataLost(PipelineFailed):
    """Records that were to be read are gone from the topic."""


class RecordsDamaged(PipelineFailed):
    """Records cannot be read: what the broker has is not what was written."""


class NotOurHistory(PipelineFailed):
    """A folder that holds no history of ours, or one that somebody else has written into."""


class HistoryDamaged(PipelineFailed):
    """A history whose log is not what was written."""
