"""Consumer groups of KIP-848: the coordinator shares out the work, one member at a time gives up and gets."""
