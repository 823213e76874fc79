"""Files of the data directory as a whole: identity, clean-shutdown marker and checkpoints; tools that inspect logs."""
