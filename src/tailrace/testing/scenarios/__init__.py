"""Stories for the simulator: real nodes, clients with a memory, faults, and what must hold afterwards."""
