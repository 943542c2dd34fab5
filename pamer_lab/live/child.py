"""An agent as a child process behind a proxy: the environment variables that point it there.

They are set for the child only; the user's configuration does not change.
"""

import os

import orjson

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"


def upstreams(given: str = "") -> tuple[str, str]:
    """Servers for OpenAI's and Anthropic's APIs: `given` for both (the second is empty), or what this process's environment names."""
    openai = given or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE") or OPENAI
    return openai, "" if given else os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC


def child_environment(url: str) -> dict[str, str]:
    """This process's variables, with those that common agents read for their model's address."""
    direct = ",".join(filter(None, [os.environ.get("NO_PROXY", ""), "127.0.0.1,localhost"]))
    providers = {"openai": {"options": {"baseURL": f"{url}/v1"}}, "anthropic": {"options": {"baseURL": f"{url}/v1"}}}
    own = {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_BASE": url,
        "NO_PROXY": direct,
        "no_proxy": direct,
    }
    if "OPENCODE_CONFIG_CONTENT" not in os.environ:
        own["OPENCODE_CONFIG_CONTENT"] = orjson.dumps({"provider": providers}).decode()
    return dict(os.environ) | own
