"""The parts of the Published results page."""
