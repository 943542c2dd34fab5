"""One thin module per command: parse, call the library, return a dictionary."""
