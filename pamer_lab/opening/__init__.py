"""The one way to open a file that a stranger may have made: `read_file`, and `Budget` for what may be made of it.

`tables` reads Arrow and Parquet.
"""

from pamer_lab.opening.budget import Budget
from pamer_lab.opening.files import below, parse_json, parse_toml, read_file, read_text, refuse_special_files, regular

__all__ = ["Budget", "below", "parse_json", "parse_toml", "read_file", "read_text", "refuse_special_files", "regular"]
