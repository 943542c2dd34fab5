"""A document -> one HTML file without external references.

Data is in `<script type="application/json">` elements, which no browser executes; `<`, `>`, `&` and the line separators of
JavaScript are written as JSON escapes, so that no text can end its element or open another. The page's own script shows text
through `textContent` only. A Content-Security-Policy allows exactly that script and that style, by their hashes, and nothing else:
no request, no image, no frame, no form. A manifest holds the SHA-256 of every data element, for the page to check.
"""

import base64
import hashlib
import html
from pathlib import Path

from pamer_lab.figures.text import visible
from pamer_lab.report.document import Document
from pamer_lab.report.texts import json_text

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("base", "sha256", "verify", "charts", "ledger", "inspector", "audit", "replay", "growth", "frontier", "study", "arena", "main")
"""The parts of the page's script, in order."""


def page(document: Document) -> str:
    """The complete file."""
    data = {"about": json_text(document.about), "texts": json_text(document.texts)}
    data |= {f"section-{number}": json_text(section) for number, section in enumerate(document.sections)}
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in data.items()}
    identity = hashlib.sha256("\n".join(f"{name} {digest}" for name, digest in sorted(hashes.items())).encode()).hexdigest()
    data = {"manifest": json_text({"report_id": identity[:16], "sections": len(document.sections), "sha256": hashes}), **data}
    style = (ASSETS / "style.css").read_text(encoding="utf-8")
    script = '"use strict";\n' + "\n".join((ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    elements = "\n".join(f'<script type="application/json" id="{name}">{text}</script>' for name, text in data.items())
    policy = (
        f"default-src 'none'; script-src '{_source(script)}'; style-src '{_source(style)}'; "
        "base-uri 'none'; form-action 'none'; frame-src 'none'; connect-src 'none'"
    )
    return TEMPLATE.format(
        policy=html.escape(policy, quote=True),
        title=html.escape(visible(title(document))),
        style=style,
        data=elements,
        script=script,
    )


def title(document: Document) -> str:
    """The title given, or one made from the first section."""
    if document.about["title"]:
        return str(document.about["title"])
    first = document.sections[0]
    match first["kind"]:
        case "replay":
            name = first["trace"]["name"] or first["trace"]["trace_id"]
            return f"Replay of {name}" if first["runs"] else f"Transcript of {name}"
        case "growth":
            count = len(first["traces"])
            return f"Context growth over {count} trace{'' if count == 1 else 's'}"
        case "study":
            return str(first["study"]["name"] or first["study"]["study_id"])
        case "arena":
            return f"Arena of {first['agent']}"
        case _:
            return str(first["title"])


def _source(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · PaMER Lab</title>
<style>{style}</style>
</head>
<body>
<noscript><p>This page needs JavaScript to show its data. It works offline and loads nothing else.</p></noscript>
<main id="page"></main>
{data}
<script>{script}</script>
</body>
</html>
"""
