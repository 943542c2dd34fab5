"""A labelled corpus for the studies' commands: searches with results, and labels by chance."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def write_labelled(path: Path, questions: int, turns: int, result: Callable[[np.random.Generator], str], *, replicas: int = 1) -> Path:
    """One trace per line; `result` writes what a search found."""
    rng = np.random.default_rng(3)
    lines = []
    for number in range(questions * replicas):
        question = number // replicas
        messages: list[dict[str, Any]] = [{"role": "user", "content": f"question {question}"}]
        labels = []
        for step in range(turns):
            call = {"id": f"c{step}", "name": "search", "arguments": json.dumps({"query": f"w{step}"})}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "content": result(rng), "tool_call_id": f"c{step}"})
            if step:
                labels.append({"t": step, "target": "compression", "value": bool(rng.random() < 0.5)})
            if step >= 3:
                labels.append({"t": step, "target": "recall", "value": bool(rng.random() < 0.5)})
        lines.append(json.dumps({"pamer_lab": 1, "question_id": f"q{question}", "messages": messages, "labels": labels}))
    path.write_text("\n".join(lines))
    return path
