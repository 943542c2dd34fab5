"""The zip of a share page: its numbers as tables, the same in CSV and Parquet, and the configuration that reproduces them.

Made from the document, so that text redacted there is redacted here; all names inside come from this program. Invariant: rows have a
fixed order and contain nothing that differs between two reports of the same runs (no times, no store versions), so equal reports give
equal bytes.
"""

import hashlib
import io
import json
import re
import zipfile
from typing import Any

import polars as pl

from pamer_lab.redaction import sentence
from pamer_lab.report.config import config_json
from pamer_lab.report.document import Document
from pamer_lab.spreadsheet import csv_text
from pamer_lab.workspace.store import TOTALS

COLUMNS = (*TOTALS, "reduction_pct")


def tables(document: Document) -> dict[str, pl.DataFrame]:
    """Frames by file name, without those that would be empty."""
    found: dict[str, list[dict[str, Any]]] = {}
    for section in document.sections:
        match section["kind"]:
            case "replay":
                _replay(section, found)
            case "growth":
                found.setdefault("growth_means", []).extend(section["means"])
                found.setdefault("growth_policies", []).extend(section["policies"])
                found.setdefault("growth_runs", []).extend(
                    {key: value for key, value in row.items() if key not in ("active", "raw")} for row in section["runs"]
                )
            case "study":
                name = f"study_{_safe(section['study']['study_id'])}"
                found[name] = [_flat(row) for row in section["study"]["rows"]]
                found[f"{name}_comparisons"] = [_flat(row) for row in section["study"]["comparisons"]]
            case "arena":
                found.setdefault("arena_results", []).extend(_flat(row) for row in [*section["results"], *section["bounds"].values()])
                found.setdefault("arena_pairs", []).extend(_flat(row) for row in section["pairs"])
                found.setdefault("arena_tasks", []).extend(_flat(row) for row in section["tasks"])
            case "published":
                found[f"published_{_safe(section['name'])}"] = [_flat(row) for row in section["rows"]]
    return {name: _frame(rows) for name, rows in found.items() if rows}


def _replay(section: dict[str, Any], found: dict[str, list[dict[str, Any]]]) -> None:
    trace = section["trace"]
    found.setdefault("blocks", []).extend(
        {
            "trace_id": trace["trace_id"],
            "block": number,
            "tokens": block["tokens"],
            "output_tokens": block["output"],
            "calls": " ".join(block["calls"]),
        }
        for number, block in enumerate(trace["blocks"])
    )
    for run in section["runs"]:
        own = {"run_id": run["run_id"], "trace_id": trace["trace_id"], "policy": run["policy"]}
        facts = {
            "profile": run["profile"],
            "status": run["status"],
            "turns": len(run["turns"]),
            "tokenizer": run["tokenizer"],
            "tokens_kind": run["tokens_kind"],
        }
        counts = {f"turns_{name}": count for name, count in run["totals"].get("actions", {}).items()}
        found.setdefault("runs", []).append(
            own | facts | {name: run["totals"].get(name) for name in COLUMNS} | counts | {"demo": run["demo"]}
        )
        for turn in run["turns"]:
            found.setdefault("turns", []).append(own | _turn(turn))
            found.setdefault("items", []).extend(
                {"run_id": run["run_id"], "t": turn["t"], "number": number, "kind": item["kind"], "tokens": item["tokens"]}
                | {"blocks": _json(item.get("spans", [])), "source": item.get("source", ""), "text_sha256": item.get("text") or ""}
                for number, item in enumerate(turn["items"])
            )
    for row in section["selections"]:
        found.setdefault("selections", []).append(
            _flat({key: value for key, value in row.items() if key not in ("reviews", "query", "goal")}) | {"reviews": len(row["reviews"])}
        )
        found.setdefault("reviews", []).extend({"audit_id": row["audit_id"]} | _flat(review) for review in row["reviews"])


def _turn(turn: dict[str, Any]) -> dict[str, Any]:
    votes = turn.get("votes", [])
    return {
        "t": turn["t"],
        "action": turn["action"],
        "reason": turn["reason"],
        "raw_tokens": turn["raw"],
        "active_tokens": turn["active"],
        "candidate_tokens": turn["candidate"],
        "output_tokens": turn["output"],
        "cached_tokens": turn["cached"],
        "votes_yes": sum(votes) if votes else None,
        "logits": _json(turn.get("logits", [])),
        "thresholds": _json(turn.get("thresholds", [])),
        "block_states": turn["states"],
        "memory_ids": " ".join(turn.get("memory_ids", [])),
        "restored_steps": _json(turn.get("restored", [])),
        "restored_in_part": _json(turn.get("restored_in_part", [])),
        "error": turn.get("error", ""),
    }


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Lists and tables as JSON text, so that a spreadsheet can show them."""
    return {key: _json(value) if isinstance(value, dict | list) else value for key, value in row.items()}


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return pl.DataFrame([{key: row.get(key) for key in columns} for row in rows], infer_schema_length=None, strict=False)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _safe(name: str) -> str:
    """A study's id as part of a file's name inside the zip."""
    return re.sub(r"[^A-Za-z0-9_\-]", "-", name)[:80]


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
        files[f"{name}.csv"] = csv_text(frame).encode()
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
