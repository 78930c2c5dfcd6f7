"""Find and repair misuse of Lightning Fabric in training code."""

__version__ = "0.1.0"
