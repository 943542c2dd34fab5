"""LLMLingua-2 and SWE-Pruner where their packages and weights are installed: what is missing, how to get it, and the loaded pruner.

Nothing is fetched. Invariant: what a pruner returns is text that the method's own code made; any failure is a `ModelError`.
"""

import os
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from pamer_lab.errors import ModelError
from pamer_lab.models.frozen import find_folder, fingerprint, is_here, model_name, remedy
from pamer_lab.reviewer_mode import refuse_in_reviewer_mode

LLMLINGUA_VARIABLE = "PAMER_LAB_LLMLINGUA"
"""Folder or hub id of other LLMLingua-2 weights."""
SWE_PRUNER_VARIABLE = "PAMER_LAB_SWE_PRUNER"
"""Folder or hub id of other SWE-Pruner weights, or the http address of a running `swe-pruner` server."""
LLMLINGUA = "microsoft/llmlingua-2-xlm-roberta-large-meetingbank"
SWE_PRUNER = "ayanami-kitasan/code-pruner"
FORCED = ("\n", "?", "!", ".")
"""Tokens that LLMLingua-2's own scripts always keep."""
SERVER_SECONDS = 120.0


def llmlingua_model() -> str:
    return os.environ.get(LLMLINGUA_VARIABLE) or LLMLINGUA


def swe_pruner_model() -> str:
    return os.environ.get(SWE_PRUNER_VARIABLE) or SWE_PRUNER


def without_llmlingua() -> str:
    """Why LLMLingua-2 cannot run here, with the commands that help; empty if it can."""
    return _without("llmlingua", "LLMLingua-2", llmlingua_model(), LLMLINGUA_VARIABLE)


def without_swe_pruner() -> str:
    """Why SWE-Pruner cannot run here, with the commands that help; empty if it can."""
    if _is_server(swe_pruner_model()):
        return ""
    reason = _without("swe_pruner", "SWE-Pruner", swe_pruner_model(), SWE_PRUNER_VARIABLE)
    return (
        f"{reason} (its package needs Python 3.12; a server of it may run elsewhere: {SWE_PRUNER_VARIABLE}=http://127.0.0.1:8000)"
        if reason
        else ""
    )


def _without(package: str, title: str, model: str, variable: str) -> str:
    wanted = [] if find_spec(package) else [f"pip install {package.replace('_', '-')}"]
    wanted += [] if is_here(model) else [f"{remedy(model)} (or {variable}=FOLDER)"]
    missing = " and ".join((["the package"] if not find_spec(package) else []) + (["the weights"] if not is_here(model) else []))
    return f"{missing} of {title} are not on this machine. Get them: {'; '.join(wanted)}" if wanted else ""


def identity(model: str) -> dict[str, str]:
    """What identifies these weights, as part of a run's id."""
    if _is_server(model):
        return {"pruner": "server"}
    return {"pruner": model_name(model), "weights": weights_fingerprint(model) if is_here(model) else ""}


@lru_cache(maxsize=4)
def weights_fingerprint(model: str) -> str:
    """The first digits of the fingerprint of a pruner's folder; read once per process."""
    return fingerprint(find_folder(model))[:16]


@lru_cache(maxsize=1)
def load_llmlingua(model: str) -> Callable[[str, float, bool], str]:
    """A function of a text, the share of it to keep, and whether to keep all digits; it returns the shorter text."""
    refuse_in_reviewer_mode("Loading a model")
    import torch

    try:
        from llmlingua import PromptCompressor  # type: ignore[import-not-found]

        device = "cuda" if torch.cuda.is_available() else "cpu"
        settings = {"trust_remote_code": False, "local_files_only": True}
        compressor: Any = PromptCompressor(str(find_folder(model)), device_map=device, model_config=settings, use_llmlingua2=True)
    except Exception as error:  # the package raises whatever its model, tokenizer or word list raises
        raise ModelError(f"LLMLingua-2 cannot be loaded ({_first(error)}); it also reads tiktoken's cl100k_base file") from error

    def compress(text: str, rate: float, digits: bool) -> str:
        try:
            found = compressor.compress_prompt_llmlingua2([text], rate=rate, force_tokens=list(FORCED), force_reserve_digit=digits)
            return str(found["compressed_prompt"])
        except Exception as error:
            raise ModelError(f"LLMLingua-2 failed ({_first(error)})") from error

    return compress


@lru_cache(maxsize=1)
def load_swe_pruner(model: str) -> Callable[[str, str, float], tuple[str, int]]:
    """A function of a question, a text and a threshold; it returns the text's relevant lines and the tokens that the model read."""
    refuse_in_reviewer_mode("Loading a model")
    ask = _served(model) if _is_server(model) else _loaded(model)

    def prune(query: str, code: str, threshold: float) -> tuple[str, int]:
        try:
            found = ask({"query": query, "code": code, "threshold": threshold, "chunk_overlap_tokens": 50})
            pruned, read = found["pruned_code"], found["model_input_token_cnt"]
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"SWE-Pruner failed ({_first(error)})") from error
        if not isinstance(pruned, str) or not isinstance(read, int):
            raise ModelError("SWE-Pruner's answer has no pruned_code or model_input_token_cnt")
        return pruned, read

    return prune


def _loaded(model: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    try:
        from swe_pruner.prune_wrapper import PruneRequest, SwePrunerForCodePruning  # type: ignore[import-not-found]

        pruner: Any = SwePrunerForCodePruning.from_pretrained(str(find_folder(model)))
    except Exception as error:
        raise ModelError(f"SWE-Pruner cannot be loaded ({_first(error)})") from error
    return lambda request: dict(pruner.prune(PruneRequest(**request)).model_dump())


def _served(address: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    import json
    from urllib.request import Request, urlopen

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        body = Request(  # noqa: S310 - `_is_server` admits http and https only
            f"{address.rstrip('/')}/prune", json.dumps(request).encode(), {"Content-Type": "application/json"}
        )
        with urlopen(body, timeout=SERVER_SECONDS) as answer:  # noqa: S310
            return dict(json.loads(answer.read(50_000_000)))

    return ask


def _is_server(model: str) -> bool:
    return model.startswith(("http://", "https://"))


def _first(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:300] if text else type(error).__name__
