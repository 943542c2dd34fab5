"""A tiny random-weight Qwen3.5 with a tokenizer of its own, served by `transformers serve`: no part of SmolLM2 is in it."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pamer_lab.bench.measure import save_tiny

TEMPLATE = (
    "{% for message in messages %}<|turn|>{{ message.role }}\n{{ message.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
"""Drops tool calls, as SmolLM2's own template does: the lab must notice and render them itself."""
VOCABULARY = 1500
ENDS = 200
"""Tokens that end an answer: random weights would hardly ever choose a single one."""


def own_tokenizer(texts: Sequence[str]) -> Any:
    """A byte-level BPE learned from these texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learned.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|turn|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learned.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=learned, eos_token="<|end|>", pad_token="<|end|>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def save_own_qwen(folder: Path, texts: Sequence[str]) -> Path:
    """The model, its tokenizer, and answers that end soon."""
    from transformers import GenerationConfig

    tokenizer = own_tokenizer(texts)
    save_tiny(folder, "qwen", positions=32_768, tokenizer=tokenizer)
    ends = [tokenizer.eos_token_id, *range(300, 300 + ENDS)]
    GenerationConfig(eos_token_id=ends, pad_token_id=tokenizer.eos_token_id).save_pretrained(folder)
    return folder


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The base URL of `transformers serve` with this model."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = str(Path(sys.executable).parent / "transformers")
    command = [program, "serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    server = subprocess.Popen(command, env=os.environ | {"HF_HUB_OFFLINE": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except OSError:
                assert server.poll() is None, "transformers serve ended early"
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(timeout=30)
