"""Turns occurrences of values in events into pairs of attribute and position."""

from __future__ import annotations

import numpy as np

from tidings.arrays.compiled import compiled, inlined
from tidings.arrays.hashing import hash_span, mix, same_bytes
from tidings.formats.kernels.json_reader import FALSE, LIST, NULL, NUMBER, TEXT, TRUE
from tidings.formats.kernels.json_tokens import full_word
from tidings.formats.kernels.lexical import LONG, YES, read_instant, read_number
from tidings.kinds.filters.kernels.layout import AGAIN, INSTANTS, NUMBERS, TEXTS, TRUTHS

_UNSURE = -2
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)


@inlined
def _number_position(mantissa, exponent, approximation, attribute, scales):  # type: ignore[no-untyped-def]
    """The position of a number, or _UNSURE when only exact arithmetic can tell."""
    begin, end = scales.number_first[attribute], scales.number_first[attribute + 1]
    numbers = scales.approximation
    slack = abs(approximation) * 1e-14
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if numbers[middle] < approximation - slack:
            low = middle + 1
        else:
            high = middle
    i = low
    unsure = False
    while i < end and numbers[i] <= approximation + slack:
        if scales.mantissa[i] == mantissa and scales.exponent[i] == exponent:
            return 2 * (i - begin) + 1
        unsure = True
        i += 1
    return _UNSURE if unsure else 2 * (low - begin)


@inlined
def _text_order(blob, low, high, scales, text):  # type: ignore[no-untyped-def]
    """Whether blob[low:high] comes after a text of the scales."""
    at, end = scales.start[text], scales.start[text + 1]
    while low < high and at < end:
        if blob[low] != scales.blob[at]:
            return blob[low] > scales.blob[at]
        low += 1
        at += 1
    return low < high


@compiled
def fill_slots(scales, slots):  # type: ignore[no-untyped-def]
    """An open-addressed table of the texts of all scales, each by its attribute and its bytes."""
    mask = np.uint64(slots.shape[0] - 1)
    for attribute in range(scales.text_first.shape[0] - 1):
        for i in range(scales.text_first[attribute], scales.text_first[attribute + 1]):
            text = scales.texts[i]
            h = hash_span(scales.blob, scales.start[text], scales.start[text + 1])
            at = mix(h, attribute) & mask
            while slots[at] >= 0:
                at = (at + np.uint64(1)) & mask
            slots[at] = i


@compiled
def text_position(blob, low, high, attribute, scales):  # type: ignore[no-untyped-def]
    """The position of a text on an attribute's scale."""
    begin, end = scales.text_first[attribute], scales.text_first[attribute + 1]
    start = np.int64(scales.ends[attribute, TRUTHS])
    if begin == end:
        return start
    texts, slots = scales.texts, scales.slots
    mask = np.uint64(slots.shape[0] - 1)
    at = mix(hash_span(blob, low, high), attribute) & mask
    while slots[at] >= 0:
        i = slots[at]
        if begin <= i < end and same_bytes(
            blob, low, high, scales.blob, scales.start[texts[i]], scales.start[texts[i] + 1]
        ):
            return start + 2 * (i - begin) + 1
        at = (at + np.uint64(1)) & mask
    if not scales.ordered[attribute]:
        return start
    left, right = begin, end
    while left < right:
        middle = (left + right) >> 1
        if _text_order(blob, low, high, scales, texts[middle]):
            left = middle + 1
        else:
            right = middle
    return start + 2 * (left - begin)


@inlined
def _instant_position(micros, attribute, scales):  # type: ignore[no-untyped-def]
    begin, end = scales.instant_first[attribute], scales.instant_first[attribute + 1]
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if scales.instants[middle] < micros:
            low = middle + 1
        else:
            high = middle
    hit = low < end and scales.instants[low] == micros
    return np.int64(scales.ends[attribute, NUMBERS]) + 2 * (low - begin) + hit


@inlined
def _views(blob, low, high, what, attribute, scales):  # type: ignore[no-untyped-def]
    """The one or two positions of a number or a text, -1 for no second; the first is _UNSURE where only exact
    arithmetic, or Python's grammar of numbers, can tell.

    A text may be looked at as a number or an instant too, where such are asked for.
    """
    has_numbers = scales.number_first[attribute] < scales.number_first[attribute + 1]
    if what == NUMBER and not has_numbers:
        return np.int64(0), np.int64(-1)
    first, is_other = np.int64(_UNSURE), False
    if has_numbers:
        status, mantissa, exponent, approximation = read_number(blob, low, high)
        is_other = status == YES or status == LONG
        if status == YES:
            first = np.int64(_number_position(mantissa, exponent, approximation, attribute, scales))
    if what == NUMBER:
        return first, np.int64(-1)
    if not is_other and scales.instant_first[attribute] < scales.instant_first[attribute + 1]:
        is_other, micros = read_instant(blob, low, high)
        if is_other:
            first = _instant_position(micros, attribute, scales)
    position = np.int64(text_position(blob, low, high, attribute, scales))
    if is_other:
        return first, position | AGAIN
    return position, np.int64(-1)


@inlined
def _bring_together(attributes, positions, begin, end):  # type: ignore[no-untyped-def]
    """Sorts an event's pairs by attribute: values of one have to stand together, in their order."""
    for i in range(begin + 1, end):
        attribute, position = attributes[i], positions[i]
        j = i
        while j > begin and attributes[j - 1] > attribute:
            attributes[j], positions[j] = attributes[j - 1], positions[j - 1]
            j -= 1
        attributes[j], positions[j] = attribute, position


@compiled
def rank_occurrences(first, path, kind, low, high, blob, plain, there, scales, stamps, memo, pairs):  # type: ignore[no-untyped-def]
    """Pairs of every event from its occurrences; returns whether some are unsure.

    plain[p] is the attribute of the values at path p, there[p] that of the path's presence, -1 for none. A position
    of ~o is unsure: that of occurrence o is to be found by the definition. Values come again and again: what a short
    one was is looked up in `memo` first.
    """
    pair_first, attributes, positions = pairs.first, pairs.attribute, pairs.position
    ends = scales.ends
    used, unsure = 0, False
    for event in range(first.shape[0] - 1):
        begin = used
        scattered = False
        for o in range(first[event], first[event + 1]):
            p = path[o]
            attribute = there[p]
            if attribute >= 0 and stamps[attribute] != event:
                stamps[attribute] = event
                attributes[used], positions[used] = attribute, ends[attribute, TEXTS]
                used += 1
            attribute = plain[p]
            what = kind[o]
            if attribute < 0 or what == NULL or what == LIST:
                continue
            if stamps[attribute] == event:
                if attributes[used - 1] != attribute:
                    scattered = True
            else:
                stamps[attribute] = event
            about, word, other = 0, np.uint64(0), np.uint64(0)
            size = high[o] - low[o]
            if (what == NUMBER or what == TEXT) and size <= 16 and low[o] + 16 <= blob.shape[0]:
                word = full_word(blob, low[o]) & _MASKS[min(size, 8)]
                other = full_word(blob, low[o] + 8) & _MASKS[max(size - 8, 0)]
                about = np.int64(attribute) << 8 | np.int64(what) << 5 | size
                slot = mix(word ^ other * _SPREAD, about) & np.uint64(memo.about.shape[0] - 1)
                if memo.about[slot] == about and memo.word[slot] == word and memo.other[slot] == other:
                    attributes[used], positions[used] = attribute, memo.first[slot]
                    used += 1
                    if memo.second[slot] >= 0:
                        attributes[used], positions[used] = attribute, memo.second[slot]
                        used += 1
                    continue
            if what == NUMBER or what == TEXT:
                view, second = _views(blob, low[o], high[o], what, attribute, scales)
                if view == _UNSURE:
                    unsure = True
                    view = ~o
                attributes[used], positions[used] = attribute, view
                used += 1
                if second >= 0:
                    attributes[used], positions[used] = attribute, second
                    used += 1
                if about and view >= 0:
                    memo.about[slot], memo.word[slot], memo.other[slot] = about, word, other
                    memo.first[slot], memo.second[slot] = view, second
            elif what == TRUE or what == FALSE:
                attributes[used] = attribute
                positions[used] = ends[attribute, INSTANTS] + (1 if what == TRUE else 0)
                used += 1
            else:
                attributes[used], positions[used] = attribute, ends[attribute, TEXTS]
                used += 1
        if scattered:
            _bring_together(attributes, positions, begin, used)
        pair_first[event + 1] = used
    return unsure


@compiled
def merge_pairs(pairs, event, attribute, position, merged):  # type: ignore[no-untyped-def]
    """Pairs with others, given in the order of events and then of attributes, put behind those of each event."""
    used, other = 0, 0
    for e in range(pairs.first.shape[0] - 1):
        for i in range(pairs.first[e], pairs.first[e + 1]):
            merged.attribute[used], merged.position[used] = pairs.attribute[i], pairs.position[i]
            used += 1
        while other < event.shape[0] and event[other] == e:
            merged.attribute[used], merged.position[used] = attribute[other], position[other]
            used += 1
            other += 1
        merged.first[e + 1] = used


@compiled
def interleave(firsts, first, order):  # type: ignore[no-untyped-def]
    """Lists of several sources, source s owning firsts[s, e] to firsts[s, e + 1] for event e, put together by event."""
    used = 0
    for e in range(first.shape[0] - 1):
        for s in range(firsts.shape[0]):
            for i in range(firsts[s, e], firsts[s, e + 1]):
                order[used] = i
                used += 1
        first[e + 1] = used
