"""Vectors -> heads: splits, losses, grid training, thresholds, metrics, margins, artefacts and the registry of heads."""
