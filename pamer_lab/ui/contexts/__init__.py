"""The parts of the Compact contexts page."""
