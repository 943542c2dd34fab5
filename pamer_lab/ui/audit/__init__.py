"""The parts of the Evidence audit page."""
