"""The blocks of a trace on one page: calls with their results, thinking folded, labels and recorded events in place.

At most `PAGE_BODIES` bodies are shown at once, plus the excerpt of a search hit. The page begins with the open block.
"""

from collections.abc import Sequence

import streamlit as st

from pamer_lab.blocks.calls import Shape, shown_call
from pamer_lab.figures.text import counted, one_line, short
from pamer_lab.trajectory import Label
from pamer_lab.trajectory.labels import by_hindsight
from pamer_lab.ui.shared.text import excerpt, in_code
from pamer_lab.ui.shared.transcript import PREFIX, Body, Hit, Transcript
from pamer_lab.ui.shared.widgets import body
from pamer_lab.ui.shared.words import HINTS
from pamer_lab.ui.transcript.navigation import PAGE_BODIES, open_block, page, prefix_room

SPEAKERS = {"assistant": "Assistant", "user": "User", "system": "System", "tool": "Tool"}
LANGUAGES: dict[Shape, str | None] = {"diff": "diff", "command": "bash", "file": None}
EVENT_WORDS = {
    "compaction": "▼ The source replaced history with a summary here",
    "context_edit": "▼ The source trimmed its history here",
    "memory_write": "▼ The agent stored something in its own memory here",
    "memory_read": "▲ The agent read its own memory here",
    "subagent": "A sub-agent ran here",
    "note": "The source recorded a note here",
}


def reader(transcript: Transcript, block: int, hit: Hit | None) -> None:
    """The opened block and as many after it as fit the page; the prefix comes before block 0."""
    if hit:
        _hit_excerpt(transcript, hit)
    shown = page(transcript, block)
    room = PAGE_BODIES
    if block == 0:
        room -= prefix_room(transcript)
        _prefix(transcript, hit)
    for number in shown:
        _block(transcript, number, hit, room)
    if shown.stop < len(transcript.sizes):
        left = len(transcript.sizes) - shown.stop
        st.button(f"Next page ({counted(left, 'more block')})", on_click=open_block, args=(shown.stop,), key="next-below")


def _hit_excerpt(transcript: Transcript, hit: Hit) -> None:
    found = next(piece for piece in transcript.bodies(hit.block) if piece.key == hit.body)
    if hit.start == hit.end:
        st.code(f"tool ⟦{one_line(found.name)}⟧", language=None, wrap_lines=True)
    else:
        st.code(excerpt(found.text, hit.start, hit.end), language=None, wrap_lines=True)


def _prefix(transcript: Transcript, hit: Hit | None) -> None:
    bodies = transcript.bodies(PREFIX)
    if not bodies:
        return
    with st.container(border=True, key="block-prefix"):
        st.markdown(f"**Prefix** · {short(transcript.prefix_tokens)} tokens", help=HINTS["prefix"])
        for piece in _some(bodies, "prefix", prefix_room(transcript), hit):
            _piece(transcript, piece, hit)


def _some(bodies: Sequence[Body], name: str, limit: int, hit: Hit | None) -> Sequence[Body]:
    """The bodies, or one part of them if there are too many for a page."""
    if len(bodies) <= limit:
        return bodies
    key = f"part-{name}"
    wanted = next((number for number, piece in enumerate(bodies) if hit and piece.key == hit.body), None)
    if wanted is not None and st.session_state.get(f"{key}-hit") != hit:
        st.session_state[f"{key}-hit"] = hit
        st.session_state[key] = wanted // limit + 1
    number = st.pagination(-(-len(bodies) // limit), key=key)
    return bodies[(number - 1) * limit : number * limit]


def _block(transcript: Transcript, number: int, hit: Hit | None, room: int) -> None:
    block = transcript.pieces.blocks[number]
    with st.container(border=True, key=f"block-{number}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"**Block {number}** · {short(transcript.sizes[number])} tokens · {short(transcript.before[number])} before it",
                width="content",
            )
            for label in transcript.labels.get(number, ()):
                _label(label)
            if not block.complete:
                st.badge("a call has no result", color="orange", help="This block is incomplete, so no policy may compress it.")
        for _, event in transcript.events.get(number, ()):
            sizes = ""
            if event.tokens_before is not None and event.tokens_after is not None:
                sizes = f": {short(event.tokens_before)} → {short(event.tokens_after)} tokens (recorded)"
            st.markdown(f"*{EVENT_WORDS[event.kind]}{sizes}*", help=HINTS["events"])
        for piece in _some(transcript.bodies(number), str(number), room, hit):
            _piece(transcript, piece, hit)


def _label(label: Label) -> None:
    words = {"compression": "▼ compression", "recall": "▲ recall"}[label.target]
    needed = "needed" if label.value else "not needed"
    steps = f", blocks {', '.join(map(str, label.steps[:12]))}" if label.steps else ""
    origin = one_line(label.origin, 40)
    words = f"{words} (hindsight)" if by_hindsight(label) else words
    st.badge(f"{words} {needed}{steps}", color="green" if label.target == "recall" else "gray", help=f"Label from {in_code(origin)}.")


def _piece(transcript: Transcript, piece: Body, hit: Hit | None) -> None:
    """One body with its heading; thinking stays folded until it is asked for or found."""
    found = hit is not None and hit.body == piece.key and hit.block == piece.block
    at = hit.start if hit and found else 0
    key = f"{transcript.trace.trace_id}-{piece.key}"
    if piece.kind == "thinking":
        panel = st.expander("Thinking (not part of the context)", expanded=found, key=f"{key}{'-hit' if found else ''}", on_change="rerun")
        if panel.open:
            with panel:
                body(piece.text, key=key, at=at)
        return
    st.markdown(_heading(transcript, piece), help=_usage(transcript, piece))
    shown = shown_call(piece.name, piece.text) if piece.kind == "call" and not found else None
    if shown is None:
        body(piece.text, key=key, at=at)
        return
    if shown.path:
        st.caption(in_code(shown.path, 200))
    body(shown.text, key=key, language=LANGUAGES[shown.shape])
    if shown.rest:
        st.caption(f"Other arguments: {in_code(shown.rest, 300)}")


def _heading(transcript: Transcript, piece: Body) -> str:
    tokens = counted(transcript.message_tokens[piece.message], "token") if piece.kind != "event" else ""
    name = f" {in_code(piece.name, 60)}" if piece.name else ""
    message = transcript.trace.messages[min(piece.message, len(transcript.trace.messages) - 1)]
    match piece.kind:
        case "call":
            whole = "" if message.content else f" · {tokens} in the message"
            return f":gray[Calls]{name}{whole}"
        case "result":
            failed = " :orange-badge[error]" if message.error else ""
            return f":gray[Result of]{name or ' a call'}{failed} · {tokens}"
        case "event":
            return f":gray[Recorded text of the {piece.name}]"
        case _:
            images = f" · {counted(len(message.images), 'image')}, shown as placeholders" if message.images else ""
            return f":gray[{SPEAKERS[piece.role]}]{name} · {tokens}{images}"


def _usage(transcript: Transcript, piece: Body) -> str | None:
    usage = transcript.trace.messages[piece.message].usage if piece.kind in ("text", "call") and piece.role == "assistant" else None
    if usage is None:
        return None
    read = f"{usage.input_tokens:,} input ({usage.cached_tokens:,} cached)"
    return f"The source recorded {read} and {usage.output_tokens:,} output tokens for this call."
