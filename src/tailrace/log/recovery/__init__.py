"""Opening a log after a stop or a crash, truncation, damage marks, and refilling a discarded log from its leader."""
