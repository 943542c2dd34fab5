"""`pamer-lab policies`: every policy with what it does, takes and needs, where it comes from and where it deviates."""

import argparse
from typing import Any

from pamer_lab.policies.registry import describe_policies


def run(args: argparse.Namespace) -> dict[str, Any]:
    return {"policies": describe_policies()}


def show(result: dict[str, Any]) -> None:
    for entry in result["policies"]:
        parameters = "".join(f":{name}={value}" for name, value in entry["parameters"].items())
        print(f"{entry['name']}{parameters}\n    {entry['description']}")
        print("".join(f"    {name}: {text}\n" for name, text in entry["takes"].items()), end="")
        print("".join(f"    source: {text}\n" for text in entry["sources"]), end="")
        print("".join(f"    differs: {text}\n" for text in entry["deviations"]), end="")
        if entry["needs"]:
            print(f"    needs: {', '.join(entry['needs'])}")
