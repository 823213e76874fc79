"""What must hold in every history, and how it is observed."""
