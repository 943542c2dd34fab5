"""Vectors -> heads: splits, losses, grid training, thresholds, metrics, controls, distillation, artefacts, studies."""
