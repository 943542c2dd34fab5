"""The commands, one module each, thin: parse, call the library, return a dictionary."""
