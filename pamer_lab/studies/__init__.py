"""Studies of decisions: labels, rows, controls, layers, distillation, and compact contexts."""
