"""The parts of the Context growth page."""
