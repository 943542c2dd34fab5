"""Which folders of this computer a page may read: named roots and nothing outside them, wherever links lead.

Commands run with their user's rights in a terminal and need none of this; a page acts for whoever sits at a browser.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from pamer_lab.config import ROOTS_VARIABLE, default_workspace
from pamer_lab.reviewer_mode import CONFIG_FILE, lab_settings

SESSION_FOLDERS = "~/.claude/projects ~/.codex/sessions ~/.gemini/tmp ~/.local/share/opencode ~/.openhands ~/.pi/agent/sessions".split()
"""Where coding agents keep their sessions; roots unless other folders are named."""


def readable_roots(folder: Path | None = None, *, sessions: Sequence[str] = SESSION_FOLDERS) -> tuple[Path, ...]:
    """The folders that pages may read, for `iter_traces(..., roots=...)` and `import_paths(..., roots=...)`.

    `PAMER_LAB_ROOTS` names them (separated like `PATH`); else `roots = ["…"]` in the workspace's `config.toml`; else they are the folder
    the program was started in (never `/`) and the session folders of coding agents that exist. `folder`: the workspace; None: the one in
    use. `sessions`: the session folders, for a caller that knows more of them.
    """
    named = [name for name in os.environ.get(ROOTS_VARIABLE, "").split(os.pathsep) if name.strip()]
    named = named or list(lab_settings(folder or default_workspace()).roots)
    found = [Path(name).expanduser() for name in named or [str(Path.cwd()), *sessions]]
    kept = [path.resolve() for path in found if path.is_absolute() and path.is_dir()]
    return tuple(dict.fromkeys(path for path in kept if named or path != Path(path.anchor)))


def roots_help() -> str:
    """How to name other folders, as one sentence."""
    return f"To allow other folders, name them in {ROOTS_VARIABLE} or as `roots` in the workspace's {CONFIG_FILE}, and start again."
