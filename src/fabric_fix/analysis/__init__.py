"""What a Fabric program does: abstract objects, their states, and the events that rules ask about."""

# first of all: what it imports imports it again, once everything that it defines is there
from fabric_fix.analysis import expressions

__all__ = ["expressions"]
