"""What a Fabric program does: abstract objects, their states, and the events that rules ask about."""
