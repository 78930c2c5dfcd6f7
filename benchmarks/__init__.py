"""The figures that fabric-fix promises, each shown by one command: `python -m benchmarks.<name>`."""
