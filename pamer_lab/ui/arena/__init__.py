"""The Arena page."""
