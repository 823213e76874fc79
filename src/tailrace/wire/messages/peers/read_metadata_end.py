"""ReadMetadataEnd: a broker asks the controller up to where the metadata log is committed.

Whoever has applied the log up to there knows every change that was answered before the question was asked.
"""

from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int64, message


@message(api=1025, versions="0-0", flexible="0+")
class ReadMetadataEnd:
    """The question has no fields."""


@message(api=1025, versions="0-0", flexible="0+")
class ReadMetadataEndAnswer(PeerAnswer):
    end: Int64 = -1  # the high watermark
