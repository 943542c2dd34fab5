"""The compact-context conditions of spec 5, one kind per file, and the study that compares them."""
