"""Random Fabric programs with random faults: the right program, or a reason."""
