"""Contexts -> vectors: serialisation, trunk-and-branch extraction, pooling, and the store of what was computed."""
