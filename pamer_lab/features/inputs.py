"""A request -> the tokens of each of its decision points: context, probe prompt, hint, serialisation, truncation, in this order."""

from collections.abc import Iterator, Sequence

from pamer_lab.blocks import cut
from pamer_lab.errors import InputError
from pamer_lab.features.contexts import context_messages, decision_index
from pamer_lab.features.serialise import Serialiser, Tokens, truncated, with_hint, with_probe_prompt
from pamer_lab.features.values import Request
from pamer_lab.models.frozen import FrozenModel
from pamer_lab.trajectory.values import Message


def points_of(request: Request) -> int:
    """How many inputs a request has."""
    return 1 if request.points is None else len(request.points)


def inputs_of(request: Request, model: FrozenModel, serialiser: Serialiser) -> Iterator[tuple[int, Tokens]]:
    """(decision point, tokens after truncation) for each point of a request."""
    for t, tokens in whole_inputs_of(request, model, serialiser):
        yield t, truncated(tokens, model.limit, model.prefix_kept)


def whole_inputs_of(request: Request, model: FrozenModel, serialiser: Serialiser) -> Iterator[tuple[int, Tokens]]:
    """The same before truncation."""
    if request.points is None:
        if not isinstance(request.context, str) or request.context != "full":
            raise InputError("a context needs decision points; give the messages themselves, or the points")
        yield -1, _tokens(request, request.messages, request.messages, 0, model, serialiser)
        return
    pieces = cut(request.messages)
    for t in request.points:
        end = decision_index(pieces, t, len(request.messages))
        coming = request.messages[end] if end < len(request.messages) else None
        known = coming.usage.input_tokens if coming and coming.usage else 0
        if request.recorded is None:
            chosen = context_messages(request.messages, t, request.context, pieces)
            yield t, _tokens(request, chosen, request.messages[:end], known, model, serialiser)
        else:
            had = request.recorded.view(request.messages, end)
            own = cut(had)
            chosen = context_messages(had, len(own.blocks), request.context, own)
            yield t, _tokens(request, chosen, had, known or request.recorded.sizes.get(t, 0), model, serialiser)


def _tokens(
    request: Request,
    chosen: Sequence[Message],
    active: Sequence[Message],
    recorded: int,
    model: FrozenModel,
    serialiser: Serialiser,
) -> Tokens:
    """The input's tokens: probe prompt, hint, serialisation, in this order; `recorded` is the size the source gives, or zero."""
    messages = with_probe_prompt(chosen, request.probe_prompt)
    if request.hint == "faithful":
        messages = with_hint(messages, _active_tokens(request, active, recorded, serialiser) + model.output_reserve)
    return serialiser.tokens(messages, request.tools)


def _active_tokens(request: Request, active: Sequence[Message], recorded: int, serialiser: Serialiser) -> int:
    """Tokens of the active request: as the caller knows them, else as recorded, else counted."""
    if request.active_tokens is not None:
        return request.active_tokens
    return recorded or serialiser.count(active, request.tools)
