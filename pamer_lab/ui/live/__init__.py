"""The parts of the Live page."""
