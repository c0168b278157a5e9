"""Which attention heads follow syntax, and which a fixed offset: masks for Mask-LRP."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..demo import FOLDER
from ..errors import InputError, MissingExtraError, UnsupportedMethodError
from ..models import encode, open_source, record
from .masks import POSITIONAL_SHARE, RELATIONS, SYNTACTIC_MARGIN, Array, HeadMasks, random_mask

if TYPE_CHECKING:
    from ..models import Encoding, Trace
    from ..tokens import Token
    from .run import Run

__all__ = ["FILE", "HeadMasks", "head_masks", "masks_for", "random_mask", "tokens_of_words"]

_SPELLINGS = {"dobj": "obj"}  # spaCy's English pipelines call the object by its older name
FILE = "head_masks.json"


def head_masks(
    model: Any,
    texts: Sequence[str],
    nlp: Any = None,
    *,
    tokenizer: Any = None,
    relations: Sequence[str] = RELATIONS,
    margin: float = SYNTACTIC_MARGIN,
    share: float = POSITIONAL_SHARE,
    file: str | Path | None = None,
    progress: bool = True,
) -> HeadMasks:
    """Find the syntactic and the positional heads of a model on a corpus.

    A head is *syntactic* if for one of nsubj, obj, amod, advmod the share of words whose most
    attended token is in the word they depend on exceeds that of the best fixed offset by more
    than 0.1. A head is *positional* if one offset takes the maximum of more than 0.8 of the
    rows. Song et al. 2024. A word of several tokens has their mean row; words and tokens are
    matched by their characters; rows of special tokens are not counted.

    Args:
        model: as for `explain`.
        texts: the corpus; a few hundred sentences settle the shares.
        nlp: a spaCy pipeline with a parser, or the name of one; None takes the first English
            one that is installed.
        relations: dependencies as the parser names them (`dobj` counts as `obj`).
        margin, share: what a head has to exceed to be syntactic, positional.
        file: a .json that keeps what was found, and gives it back at the next call with the same
            model, texts and settings; masks of anything else in it are left and refused.
        progress: show a progress bar.

    >>> from mixwidget import demo, head_masks
    >>> masks = head_masks(demo.load()[0], ["the plot is thin"] * 3, progress=False)
    >>> masks.syntactic.shape
    (4, 6)
    """
    from tqdm.auto import tqdm

    if isinstance(texts, str) or not texts:
        raise InputError("texts must be a list of at least one text.")
    wanted = _settings(relations, margin, share)
    source = open_source(model, tokenizer)
    made_of = "" if file is None else _fingerprint(source.model, texts, nlp, wanted)
    if file is not None and Path(file).exists():
        kept = HeadMasks.load(file)
        if kept.made_of != made_of:
            raise InputError(
                f"{str(file)!r} holds masks of another model, other texts or other settings. Name "
                "another file, or delete it."
            )
        return kept
    pipeline = _pipeline(nlp)
    source = source.shadowed()
    counts: _Counts | None = None
    for text in tqdm(texts, desc="heads", disable=not progress):
        encoding = encode(source, text, truncate=True)
        trace = record(source.model, encoding.inputs, source.anatomy)
        counts = counts or _Counts(len(trace), trace.heads, wanted[0])
        counts.add(trace, encoding, pipeline(text))
    assert counts is not None
    found = replace(counts.finished(margin, share), made_of=made_of)
    if file is not None:
        found.save(file)
    return found


def _settings(
    relations: Sequence[str], margin: float, share: float
) -> tuple[tuple[str, ...], float, float]:
    """Checked, with relations by their present names."""
    if isinstance(relations, str) or not relations:
        raise InputError("relations must be a list of at least one dependency.")
    named = tuple(dict.fromkeys(_SPELLINGS.get(one, one) for one in relations))
    for name, value in (("margin", margin), ("share", share)):
        if not 0 <= value <= 1:
            raise InputError(f"{name} is {value!r}; it is a share from 0 to 1.")
    return named, margin, share


def _fingerprint(model: Any, texts: Sequence[str], nlp: Any, settings: Any) -> str:
    """Of what masks depend on: weights, texts, parser, settings."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        whole = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(memoryview(whole.view(torch.uint8).numpy()))
    told = getattr(nlp, "meta", None) or {}
    parser = (told.get("lang"), told.get("name"), told.get("version")) if told else nlp
    digest.update(repr((list(texts), parser if told or isinstance(nlp, str) else "")).encode())
    digest.update(repr(settings).encode())
    return digest.hexdigest()[:32]


def _pipeline(nlp: Any) -> Any:
    """A callable that parses; loads spaCy only if it has to."""
    if nlp is not None and not isinstance(nlp, str):
        if not callable(nlp):
            raise InputError(f"nlp must be a spaCy pipeline or its name, not {type(nlp).__name__}.")
        return nlp
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError(
            'Syntactic heads need spaCy: pip install "mixwidget[syntax]", and an English pipeline '
            "(python -m spacy download en_core_web_sm)."
        ) from error
    names = [nlp] if nlp else sorted(n for n in spacy.util.get_installed_models() if n[:2] == "en")
    try:
        return spacy.load(names[0])
    except (IndexError, OSError) as error:
        raise MissingExtraError(
            f"spaCy has no pipeline {nlp or 'for English'!r}. Install one (python -m spacy "
            "download en_core_web_sm), or pass it: nlp=spacy.load(...)."
        ) from error


class _Counts:
    """Running counts over a corpus."""

    def __init__(self, layers: int, heads: int, relations: tuple[str, ...]) -> None:
        self.relations = relations
        kinds = len(relations)
        self.hits = np.zeros((kinds, layers, heads))
        self.words = np.zeros(kinds, dtype=np.int64)
        self.distances: list[dict[int, int]] = [{} for _ in range(kinds)]
        self.positions = _Positions(layers, heads)

    def add(self, trace: Trace, encoding: Encoding, doc: Iterable[Any]) -> None:
        weights = _weights(trace)
        self.positions.add(weights, encoding)
        places = tokens_of_words(encoding.tokens, list(doc))
        for word in doc:
            relation = _SPELLINGS.get(word.dep_, word.dep_)
            own, head = places.get(word.i, []), places.get(word.head.i, [])
            if relation not in self.relations or word.head.i == word.i or not own or not head:
                continue
            kind = self.relations.index(relation)
            most = weights[:, :, own].mean(2).argmax(-1)  # [L, H]
            self.hits[kind] += np.isin(most, head)
            self.words[kind] += 1
            distance = word.head.i - word.i
            seen = self.distances[kind]
            seen[distance] = seen.get(distance, 0) + 1

    def finished(self, margin: float, share: float) -> HeadMasks:
        words = np.maximum(self.words, 1)
        shares = self.hits / words[:, None, None]
        common = np.array([max(seen.values(), default=0) for seen in self.distances]) / words
        gains = shares - common[:, None, None]
        counted = (self.words > 0)[:, None, None]
        best, offsets = self.positions.best()
        return HeadMasks(
            syntactic=np.any((gains > margin) & counted, axis=0).astype(np.int8),
            positional=(best > share).astype(np.int8),
            syntactic_shares=shares,
            offset_shares=common,
            positional_shares=best,
            offsets=offsets,
            words=self.words,
            tokens=self.positions.rows,
            relations=self.relations,
            distances=dict(zip(self.relations, self.distances, strict=True)),
            margin=margin,
            share=share,
        )


class _Positions:
    """At which offset each head's maximum lies, counted over rows of ordinary tokens."""

    def __init__(self, layers: int, heads: int) -> None:
        self.counts: dict[int, Array] = {}
        self.shape = (layers, heads)
        self.rows = 0

    def add(self, weights: Array, encoding: Encoding) -> None:
        rows = np.array(encoding.ordinary())
        offsets = weights[:, :, rows].argmax(-1) - rows  # [L, H, rows]
        for offset in np.unique(offsets):
            found = (offsets == offset).sum(-1)
            self.counts[int(offset)] = self.counts.get(int(offset), np.zeros(self.shape)) + found
        self.rows += len(rows)

    def best(self) -> tuple[Array, NDArray[np.int64]]:
        """(share, offset) of every head's commonest offset, [L, H] each."""
        known = np.array(sorted(self.counts))
        stacked = np.stack([self.counts[int(offset)] for offset in known])
        return stacked.max(0) / max(1, self.rows), known[stacked.argmax(0)]


def _weights(trace: Trace) -> Array:
    """[L, H, n, n]"""
    layers = [trace.weights(layer).float().cpu().numpy() for layer in trace.attending]
    if len(layers) != len(trace) or len({len(layer) for layer in layers}) != 1:
        raise UnsupportedMethodError(
            "Heads are compared where every layer attends with the same number of them; this "
            "model has layers without attention, or of unlike numbers of heads."
        )
    return np.stack(layers)


def tokens_of_words(tokens: Sequence[Token], words: Sequence[Any]) -> dict[int, list[int]]:
    """For every parsed word the tokens that share a character with it, by its number.

    A word needs `idx` (its first character), `i` (its number) and a length.
    """
    spans = [(word.idx, word.idx + len(word), word.i) for word in words]
    places: dict[int, list[int]] = {number: [] for _, _, number in spans}
    for position, token in enumerate(tokens):
        if token.special or token.segment != 0:
            continue
        if token.start is None or token.end is None:
            raise InputError(
                "This tokenizer does not say which characters its tokens cover, so words and "
                "tokens cannot be matched. Use its fast version."
            )
        for start, end, number in spans:
            if token.start < end and start < token.end:
                places[number].append(position)
    return places


def masks_for(run: Run, given: Any) -> tuple[list[Array], str]:
    """The masks [L, H] that Mask-LRP is to use, one or two parts, and where they come from."""
    shape = (len(run.trace), run.trace.heads)
    if given is None:
        return _found_masks(run)
    if isinstance(given, HeadMasks):
        return _checked([given.syntactic, given.positional], shape), _noted(
            f"given, from head_masks ({_count(given.mask)})", given.mask
        )
    try:
        array = np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError("mask must be [layers, heads] of 0 and 1.") from error
    parts = list(array) if array.ndim == 3 and len(array) == 2 else [array]
    masks = _checked(parts, shape)
    union = np.maximum.reduce(masks)
    return masks, _noted(f"given ({_count(union)})", union)


def _checked(parts: list[Any], shape: tuple[int, int]) -> list[Array]:
    masks: list[Array] = [np.asarray(part, dtype=np.float64) for part in parts]
    for mask in masks:
        if mask.shape != shape:
            raise InputError(
                f"mask has shape {mask.shape}, but the model has {shape[0]} layers of {shape[1]} "
                "heads."
            )
        if not np.isin(mask, (0, 1)).all():
            raise InputError("mask must hold only 0 and 1.")
    return masks


def _found_masks(run: Run) -> tuple[list[Array], str]:
    """The demo model's own masks, or the heads that are positional in this text."""

    shape = (len(run.trace), run.trace.heads)
    name = getattr(run.source.model, "name_or_path", "")
    if name and Path(name) == FOLDER and (FOLDER / FILE).exists():
        masks = HeadMasks.load(FOLDER / FILE)
        if masks.mask.shape == shape:
            return _checked([masks.syntactic, masks.positional], shape), _noted(
                f"the demo model's own ({_count(masks.mask)})", masks.mask
            )
    positions = _Positions(*shape)
    positions.add(_weights(run.trace), run.encoding)
    best, _ = positions.best()
    mask = (best > POSITIONAL_SHARE).astype(np.float64)
    note = (
        f"positional heads found in this text alone ({_count(mask)}); "
        "mixwidget.head_masks finds better ones from a corpus"
    )
    return [mask], _noted(note, mask)


def _count(mask: Any) -> str:
    return f"{int(np.sum(np.asarray(mask) > 0))} of {np.size(mask)}"


def _noted(note: str, mask: Any) -> str:
    empty = "; it holds no head, so relevance goes down the residual path only"
    return note if np.any(mask) else note + empty
