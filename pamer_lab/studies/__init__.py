"""Studies of decisions: labels, decision points, controls, layers, distillation and compact contexts."""
