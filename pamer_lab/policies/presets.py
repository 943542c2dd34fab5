"""Agent programs and libraries by name -> the policy and parameters that do the same, and how we know.

A preset is an alias for a policy: its runs carry the policy's own name.
"""

from dataclasses import dataclass

from pamer_lab.policies.interface import Basis


@dataclass(frozen=True)
class Preset:
    """What one program does, as a policy."""

    policy: str
    basis: Basis
    """How its parameters are known."""
    source: str


PRESETS: dict[str, Preset] = {
    "claude-code": Preset("auto-compact:167000:tail=0", "note", "window 200,000 less 20,000 for the summary and 13,000; no public code"),
    "codex": Preset("auto-compact:244800:tail=0", "code", "openai/codex: 90 % of the window, here 272,000"),
    "gemini-cli": Preset(
        "auto-compact:524288:tail=0:keep=0.3", "code", "google-gemini/gemini-cli: half of 1,048,576; the newest 30 % stay"
    ),
    "opencode-prune": Preset("keep-last-tokens", "code", "anomalyco/opencode: newest 40,000 tokens of tool output, steps of 20,000"),
    "cline": Preset("forget-half", "code", "cline/cline without auto-condense: window 200,000 less 40,000"),
    "openhands": Preset("openhands-condenser", "code", "OpenHands/software-agent-sdk: max_size 120, keep_first 4"),
    "openhands-forgetting": Preset(
        "forget-half:101:of=messages:first=0", "code", "All-Hands-AI/OpenHands, amortized forgetting: over 100 events"
    ),
    "swe-agent": Preset("observation-masking:5", "code", "SWE-agent/SWE-agent 0.7 configuration: last_n_observations, n = 5"),
    "anthropic-context-editing": Preset("clear-tool-uses", "paper", "Anthropic API, clear_tool_uses_20250919 with its defaults"),
    "langchain-context-editing": Preset("clear-tool-uses", "code", "langchain-ai/langchain: ClearToolUsesEdit with its defaults"),
    "letta": Preset("memgpt", "code", "letta-ai/letta: partial eviction, 30 % of the messages stay; window 32,000"),
}
"""Name -> preset."""
