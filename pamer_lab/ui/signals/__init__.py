"""The parts of the Layerwise signals page."""
