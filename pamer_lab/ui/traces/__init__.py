"""The parts of the Traces page."""
