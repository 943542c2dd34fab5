"""The one way to open an untrusted file: `read_file`, and `Budget` for what it may become in memory.

`tables` reads Arrow and Parquet.
"""

from pamer_lab.opening.budget import Budget
from pamer_lab.opening.files import below, parse_json, parse_toml, read_file, read_text, refuse_special_files, regular

__all__ = ["Budget", "below", "parse_json", "parse_toml", "read_file", "read_text", "refuse_special_files", "regular"]
