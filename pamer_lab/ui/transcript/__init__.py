"""The parts of the Transcript page."""
