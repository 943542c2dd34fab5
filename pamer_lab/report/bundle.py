"""The zip of a share page: its numbers as CSV and Parquet, and the configuration that reproduces them.

Equal tables give equal bytes (entries have no times), and all names inside come from this program.
"""

import hashlib
import io
import zipfile

from pamer_lab.redaction import sentence
from pamer_lab.report.config import config_json
from pamer_lab.report.document import Document
from pamer_lab.report.tables import tables

README = """The numbers of a PaMER Lab share page.

config.json   the report's configuration; `pamer-lab report --config config.json --out again.html` reproduces the CSV files, byte for
              byte, in a workspace with the same traces (missing runs are replayed first)
*.csv         for reading and spreadsheets; lists are JSON text
*.parquet     the same tables with their types
SHA256SUMS    of every file here (`sha256sum -c SHA256SUMS`)

{note}
{redaction}
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def bundle(document: Document) -> bytes:
    """The zip's bytes."""
    files: dict[str, bytes] = {"config.json": config_json(document.config).encode()}
    for name, frame in tables(document).items():
        files[f"{name}.csv"] = frame.write_csv().encode()
        stream = io.BytesIO()
        frame.write_parquet(stream)
        files[f"{name}.parquet"] = stream.getvalue()
    files["README.txt"] = README.format(note=document.about["fixed_actions"], redaction=sentence(document.findings)).encode()
    sums = "".join(f"{hashlib.sha256(body).hexdigest()}  {name}\n" for name, body in sorted(files.items()))
    files["SHA256SUMS"] = sums.encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, body)
    return stream.getvalue()
