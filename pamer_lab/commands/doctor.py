"""`pamer-lab doctor`: what is available, what is missing, and how to get it."""

import argparse
import tempfile
from typing import Any

from pamer_lab.config import address_of, default_workspace
from pamer_lab.models import health
from pamer_lab.models.frozen import chosen_model, model_name
from pamer_lab.models.health import GB, Check, guarded
from pamer_lab.models.profiles import Profile, load_profile
from pamer_lab.probes.artefact import TRAIN
from pamer_lab.probes.registry import list_heads


def run(args: argparse.Namespace) -> dict[str, Any]:
    profile = load_profile(args.profile, default_workspace())
    device = health.device_facts()
    profiles = health.all_profiles(profile)
    chosen = next(row for row in profiles if row["name"] == profile.name)
    checks = [
        guarded("packages", health.package_check),
        *(Check(f"{profile.name}: {part['name']}", part["ok"], part["detail"], part["fix"], part["required"]) for part in chosen["parts"]),
        guarded("heads", lambda: _heads(profile), TRAIN),
        guarded("LanceDB", _store),
        guarded("chromium", health.browser_check),
    ]
    result = {
        "ok": all(check.ok for check in checks if check.required),
        "profile": profile.name,
        "device": device,
        "profiles": profiles,
        "checks": [check.row() for check in checks],
    }
    if profile.name != "embedded":
        result["gpu_memory"] = health.memory_facts(profile, device)
    return result


def _heads(profile: Profile) -> Check:
    model = model_name(chosen_model(profile.frozen_model))
    entries, faults = list_heads(default_workspace())
    fitting = [entry.name for entry in entries if entry.heads.model_name == model]
    damaged = f"; cannot be read: {'; '.join(faults)}" if faults else ""
    if not fitting:
        return Check("heads", False, f"none for {model}; compression decisions need heads{damaged}", TRAIN, required=False)
    return Check("heads", True, f"for {model}: {', '.join(fitting)}{damaged}", required=False)


def _store() -> Check:
    """Whether LanceDB can write to the workspace, or to the folder in which it would be created."""
    from importlib.metadata import version

    folder = default_workspace()
    if address := address_of(folder):
        return _object_store(address, version("lancedb"))
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    with tempfile.NamedTemporaryFile(dir=place, prefix=".pamer-lab-doctor-"):
        pass
    tables = len(list((folder / "lance").glob("*.lance"))) if (folder / "lance").is_dir() else 0
    return Check("LanceDB", True, f"lancedb {version('lancedb')}, workspace {folder} is writable ({tables} tables)")


def _object_store(address: str, version: str) -> Check:
    """Whether the object store accepts the credentials of the environment, and whether they may write."""
    from pamer_lab.workspace import Workspace
    from pamer_lab.workspace.catalogue import listed
    from pamer_lab.workspace.store import may_write

    workspace = Workspace(address)
    traces = listed(workspace, most=1).total
    words = "may write" if may_write(workspace) else "may only read"
    return Check("LanceDB", True, f"lancedb {version}, {address} answers, the credentials {words} ({traces} traces)")


def show(result: dict[str, Any]) -> None:
    device = result["device"]
    memory = f"{device['memory_available'] / GB:.1f} of {device['memory_total'] / GB:.1f} GB free"
    print(f"device   {device['name']}, {device['cores']} cores, {memory}")
    for gpu in device["gpus"]:
        print(f"         {gpu['name']}, {gpu['memory_available'] / GB:.1f} of {gpu['memory_total'] / GB:.1f} GB free")
    for check in result["checks"]:
        mark = "ok     " if check["ok"] else "MISSING" if check["required"] else "-      "
        print(f"{mark}  {check['name']}: {check['detail']}" + (f"\n         fix: {check['fix']}" if check["fix"] else ""))
    for row in result["profiles"]:
        lacking = [part for part in row["parts"] if not part["ok"]]
        state = "ready" if row["ok"] else "; ".join(f"{part['detail']} (fix: {part['fix']})" for part in lacking)
        print(f"profile  {row['name']}: {state}")
    if needed := result.get("gpu_memory"):
        print(
            f"memory   {needed['model']} with {needed['input_tokens']:,} tokens (estimated): weights {needed['weights_gb']} GB + cache "
            f"{needed['cache_gb']} GB + working {needed['working_gb']} GB = about {needed['total_gb']} GB"
        )
        print(f"         fits: {', '.join(needed['cards']) or 'no single GPU in our list'}")
    print("ready" if result["ok"] else f"the {result['profile']} profile is not ready; see MISSING above")
