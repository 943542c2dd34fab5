"""Finds what should not be exported: keys by their shape, secrets by their context, personal data, and text that looks random.

Knows texts and places, nothing of exports. Every pattern here works on untrusted text, so its time is linear in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

from pamer_lab.detection.context import context_spans, is_secret_value
from pamer_lab.detection.entropy import possible_spans
from pamer_lab.detection.known import Known
from pamer_lab.detection.private_keys import private_key_spans
from pamer_lab.detection.shapes import RULES, Kind
from pamer_lab.detection.views import JOINT, WRAP, View, dumped_texts, encoded_texts, recoloured, unwrapped, views, without_margins

__all__ = ["KEYS", "PERSONAL", "Kind", "Known", "Place", "find_secrets", "is_secret_value", "with_known"]

KEYS: frozenset[Kind] = frozenset({"private key", "API key", "token", "password"})
"""What the choice `keys` replaces."""
PERSONAL: frozenset[Kind] = frozenset({"e-mail address", "home folder"})
"""What only `all` replaces, together with possible keys."""
Place = tuple[int, int, Kind]
_MAIL = re.compile(r"(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]{1,64}+@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9\-])")
_HOMES = (
    re.compile(r"(?:(?<![\w.~/\-])/(?:home|Users)/|(?<![A-Za-z0-9])[A-Za-z]:\\{1,2}Users\\{1,2})(?P<secret>[^\s/\\:'\"<>|*?,;]{1,64})"),
    re.compile(r"(?<![\w.~/\-])/(?P<secret>root)(?=/)"),
)
MOST_ENCODED = 3
"""Levels of base64 and the like that are decoded."""
_PLACEHOLDER = re.compile(r"(?i)(?:x{3,}|\*{3,}|\.{3,}|your[_\-].*|<.*>|example.*|\[redacted.*)")


def find_secrets(text: str, own: tuple[str, ...] = ()) -> list[Place]:
    """Places in order and without overlap; `own` are values that are secret whatever they look like.

    Keys that overlap become one place, so that nothing of either is left; personal data and possible keys count only where no key is.
    """
    keys: set[Place] = set()
    personal: set[Place] = set()
    possible: set[Place] = set()
    for view in views(text):
        for begin, stop in view.changed():
            for start, end, kind in _in_view(view.text[begin:stop], own):
                kept = keys if kind in KEYS else personal if kind in PERSONAL else possible
                kept.add((*view.place(begin + start, begin + end), kind))
        keys.update(_in_margins(recoloured(view), own))
    found = _joined(sorted(keys))
    found = _joined(sorted({*found, *_over_lines(view, own, found), *_in_margins(without_margins(view), own), *_encoded(view, own)}))
    return _beside(_beside(found, sorted(personal)), sorted(possible))


def _over_lines(view: View, own: tuple[str, ...], known: list[Place]) -> Iterator[Place]:
    """Keys cut by a line break, or by a joint of two string literals. Where the line may really end there, a known key keeps its end."""
    ends = [end for _, end, _ in known]
    for breaks in (WRAP, JOINT):
        if found := unwrapped(view, breaks):
            yield from _in_joined(*found, own, known, ends)


def _in_joined(joined: View, doubtful: list[int], own: tuple[str, ...], known: list[Place], ends: list[int]) -> Iterator[Place]:
    for begin, stop in joined.changed():
        for start, end, kind in _in_view(joined.text[begin:stop], own):
            start, end = begin + start, begin + end
            place = joined.place(start, end)
            at, doubt = bisect_right(ends, place[0]), bisect_right(doubtful, start)
            if at < len(known) and known[at][0] < place[1] and doubt < len(doubtful) and doubtful[doubt] < end:
                place = joined.place(start, doubtful[doubt])
            if kind in KEYS:
                yield (*place, kind)


def _in_margins(bare: View | None, own: tuple[str, ...]) -> Iterator[Place]:
    """Keys in a view without the line prefixes or colours that tools add, which may separate a key from its context."""
    if bare is None:
        return
    for begin, stop in bare.changed():
        for start, end, kind in _in_view(bare.text[begin:stop], own):
            if kind in KEYS:
                yield (*bare.place(begin + start, begin + end), kind)


def _encoded(view: View, own: tuple[str, ...]) -> Iterator[Place]:
    first = view
    while first.made_of is not None:
        first = first.made_of
    joined, _ = unwrapped(view) or (view, [])
    for seen in (first, *([view] if view is not first else []), *([joined] if joined is not view else [])):
        for texts in (encoded_texts, dumped_texts):
            for start, end, plain in texts(seen.text):
                if kind := _kind_inside(plain, own, MOST_ENCODED):
                    yield (*seen.place(start, end), kind)


def _kind_inside(plain: str, own: tuple[str, ...], levels: int) -> Kind | None:
    """The kind of the first key in a decoded text, which may be encoded again."""
    kind = next((kind for view in views(plain) for _, _, kind in _in_view(view.text, own) if kind in KEYS), None)
    if kind is None and levels > 1:
        kind = next((inner for _, _, again in encoded_texts(plain) if (inner := _kind_inside(again, own, levels - 1))), None)
    return kind


def with_known(text: str, places: list[Place], known: Known) -> list[Place]:
    """The places, and those of known values."""
    more = list(known.places(text))
    if not more:
        return places
    keys = [place for place in places if place[2] in KEYS]
    return _beside(_joined(sorted({*keys, *more})), [place for place in places if place[2] not in KEYS])


def _in_view(text: str, own: tuple[str, ...]) -> Iterator[Place]:
    for value in own:
        for match in re.finditer(re.escape(value), text):
            yield match.start(), match.end(), "API key"
    lower = text.lower()
    for rule in RULES:
        if rule.keyword in lower:
            group = "secret" if "secret" in rule.pattern.groupindex else 0
            for match in rule.pattern.finditer(text):
                if not _PLACEHOLDER.fullmatch(match[group]):
                    yield match.start(group), match.end(group), rule.kind
    if "private key" in lower:
        yield from ((*span, "private key") for span in private_key_spans(text))
    yield from context_spans(text, lower)
    if "@" in text:
        yield from ((*match.span(), "e-mail address") for match in _MAIL.finditer(text))
    for pattern in _HOMES:
        yield from ((*match.span("secret"), "home folder") for match in pattern.finditer(text))
    yield from ((*span, "possible key") for span in possible_spans(text))


def _joined(places: list[Place]) -> list[Place]:
    """Overlapping places merged, each with the kind that began first."""
    joined: list[Place] = []
    for start, end, kind in places:
        if joined and start < joined[-1][1]:
            begin, last, first = joined[-1]
            joined[-1] = (begin, max(last, end), _RANK[min(_RANK.index(first), _RANK.index(kind))] if start == begin else first)
        else:
            joined.append((start, end, kind))
    return joined


_RANK: tuple[Kind, ...] = ("private key", "API key", "token", "password", "e-mail address", "home folder", "possible key")
"""Of two kinds that begin together, the first counts."""


def _beside(taken: list[Place], more: list[Place]) -> list[Place]:
    """Both in order, without those of `more` that overlap another place."""
    result: list[Place] = []
    queue = iter(taken)
    ahead = next(queue, None)
    for start, end, kind in more:
        while ahead is not None and ahead[0] <= start:
            result.append(ahead)
            ahead = next(queue, None)
        if (not result or result[-1][1] <= start) and (ahead is None or end <= ahead[0]):
            result.append((start, end, kind))
    if ahead is not None:
        result.append(ahead)
    return [*result, *queue]
