"""Opening a log after a stop or a crash: scan, truncate, mark damage, refill."""
