"""What the format readers share: field access, rows, content parts, messages, steps, logged exchanges. Defines no format."""
