"""Edited inputs through the model: what it predicts when tokens are replaced or deleted."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..errors import InputError, NumericsError
from ..tokens import Target
from .encode import Encoding
from .gradients import read, source_batches
from .readable import is_byte_level
from .reuse import Work, on_prefixes
from .source import Source
from .thread import as_it_was
from .trace import plain_output, takes

By = Literal["mask", "unk", "pad", "delete"]
WAYS: tuple[By, ...] = ("mask", "unk", "pad", "delete")

# Tokens in one pass: fills the cores, and keeps the activations of long texts in bounds.
_BATCH_TOKENS = 2048
_WORTH_A_PASS = 128
# Of the tokens of a pass at most one in so many is the last of some text: lengths are like each
# other, and one is asked of each text.
_LENGTHS = 3


def neutral_token(source: Source, by: str = "mask") -> tuple[int | None, str]:
    """(id, name) of the token that stands in for a removed one; (None, "") if there is none.

    Models without a mask token fall back on the unknown token, then on padding, but not on one
    that also begins or ends texts (GPT-2's only special token): it would say that they end here.
    """
    tokenizer = source.tokenizer
    names = {"mask": ("mask", "unk", "pad"), "unk": ("unk",), "pad": ("pad",)}[by]
    frame = {getattr(tokenizer, f"{name}_token_id", None) for name in ("bos", "eos", "cls", "sep")}
    if by == "mask" and is_byte_level(tokenizer):  # knows every text: its "unknown" is an end
        frame.add(getattr(tokenizer, "unk_token_id", None))
    for name in names:
        token = getattr(tokenizer, f"{name}_token_id", None)
        if token is not None and (by != "mask" or name == "mask" or token not in frame):
            return int(token), str(getattr(tokenizer, f"{name}_token"))
    return None, ""


def begin_token(source: Source) -> int | None:
    """What a text begins with of which nothing is left."""
    names = (f"{name}_token_id" for name in ("bos", "cls", "eos", "pad"))
    found = [one for name in names if (one := getattr(source.tokenizer, name, None)) is not None]
    return int(found[0]) if found else None


def stand_in_name(source: Source, by: str) -> str:
    """What stands in the place of a removed token, in words."""
    if by == "delete":
        return "nothing (deleted)"
    return neutral_token(source, by)[1] or "nothing (left out of attention)"


@dataclass(frozen=True)
class Edit:
    """One edited text.

    Attributes:
        ids: its tokens.
        kept: for each of them the index it had in the text.
        target: the target, at its place in the edited text; None if it cannot be read there.
        first_row: as in its encoding.
        unseen: places that no token attends to.
    """

    ids: list[int]
    kept: list[int]
    target: Target | None
    first_row: int = 0
    unseen: frozenset[int] = frozenset()


def edit(source: Source, encoding: Encoding, target: Target, tokens: Sequence[int], by: By) -> Edit:
    """The text with some tokens replaced (by "mask", "unk", "pad") or deleted."""
    gone, first = set(tokens), encoding.first_row
    ids = [token.id for token in encoding.tokens]
    if by != "delete":
        stand_in, _ = neutral_token(source, by)
        if stand_in is None and by == "mask":
            return Edit(ids, list(range(len(ids))), target, first, frozenset(gone))
        if stand_in is None:
            raise InputError(
                f"This tokenizer has no token for by={by!r}. Use by='delete', or give the "
                "tokenizer one."
            )
        replaced: list[int] = [stand_in if i in gone else token for i, token in enumerate(ids)]
        return Edit(replaced, list(range(len(ids))), target, first)
    kept = [i for i in range(len(ids)) if i not in gone]
    rows = [i - first for i in kept if i >= first]
    moved = _moved(target, rows, len(ids) - first)
    read = len(kept) - len(rows)  # tokens that are left to the encoder
    empty = target.kind == "answer" and (not read if first else moved is None)
    begin = begin_token(source) if empty else None
    if begin is not None and first:  # nothing is left to the encoder
        return Edit([begin, *(ids[i] for i in kept)], [0, *kept], moved, 1)
    if begin is not None:  # nothing stands before the answer any more
        held = tuple(bisect_right(rows, row) for row in target.position)  # type: ignore[union-attr]
        return Edit([begin, *(ids[i] for i in kept)], [0, *kept], replace(target, position=held))
    return Edit([ids[i] for i in kept], kept, moved if read or not first else None, read)


def _moved(target: Target, kept: list[int], n: int) -> Target | None:
    """A target where its row is now, of the n rows those in `kept`; None when the token it is
    read from is gone.

    What comes after the last token of a causal model is read from the last that is left.
    """
    place = {old: new for new, old in enumerate(kept)}
    if target.kind == "span":
        start, end = target.index  # type: ignore[misc]
        if start not in place or end not in place:
            return None
        return replace(target, index=(place[start], place[end]))
    if target.kind == "answer":  # each token is read from the last that is left before it
        held = [bisect_right(kept, row) - 1 for row in target.position]  # type: ignore[union-attr]
        return replace(target, position=tuple(held)) if min(held) >= 0 else None
    if target.position is None:
        return target
    if target.position in place:
        return replace(target, position=place[target.position])
    if target.position == n - 1 and kept:
        return replace(target, position=len(kept) - 1)
    return None


@as_it_was
def predict(
    source: Source,
    encoding: Encoding,
    edits: Sequence[Edit],
    *,
    of: str = "probability",
    check: Callable[[], None] | None = None,
    report: Callable[[float], None] | None = None,
    batch_tokens: int = _BATCH_TOKENS,
) -> Tensor:
    """What the model gives the target in each edited text, [edits], float64 on the CPU.

    Texts of like length run together, padded. A text in which the target can no longer be read
    (its place deleted, nothing left) gives probability 0, and NaN where a logit was asked for. Of
    an answer it is the log probability; where nothing is left, it is read after the token that
    begins texts.

    Args:
        source: of a case, whose model is a shadow.
        of: "probability" or "logit".
        check: called before every pass; may raise to stop.
        report: called with the share done after every pass.
    """
    values = torch.full((len(edits),), _unread(source, edits, of)).double()
    order = [i for i, one in enumerate(edits) if one.target is not None and one.ids]
    order.sort(key=lambda i: len(edits[i].ids))
    most = most_tokens(source) * (_LENGTHS if _keeps(source) else 1)
    limit = min(batch_tokens, most) if source_batches(source) else 0
    work = Work(
        limit, pad_id(source), of, lambda some: _run(source, encoding, some, of), check, report
    )
    ready = on_prefixes(source, encoding, [edits[i] for i in order], work)
    for i, value in ready.items():
        values[order[i]] = value
    order = [one for i, one in enumerate(order) if i not in ready]
    done, all_ = len(ready), len(ready) + len(order)
    for chunk in chunks(order, [len(one.ids) for one in edits], limit):
        if check is not None:
            check()
        values[chunk] = _run(source, encoding, [edits[i] for i in chunk], of)
        done += len(chunk)
        if report is not None:
            report(done / max(1, all_))
    return values


def _unread(source: Source, edits: Sequence[Edit], of: str) -> float:
    """Of a text in which the target cannot be read: of an answer as much as of a guess."""
    target = next((one.target for one in edits if one.target is not None), None)
    if target is not None and target.kind == "answer":
        words = int(getattr(source.model.config.get_text_config(), "vocab_size", 2))
        return -len(target.index) * math.log(words)  # type: ignore[arg-type]
    return 0.0 if of == "probability" else float("nan")


def most_tokens(source: Source) -> int:
    """Language models put out a number per token and vocabulary entry: 128 MB of them."""
    if source.task not in ("masked_lm", "causal_lm", "seq2seq_lm"):
        return _BATCH_TOKENS
    return max(1, 2**25 // int(getattr(source.model.config, "vocab_size", 1)))


def chunks(order: list[int], lengths: list[int], limit: int) -> Iterator[list[int]]:
    """Runs of texts, sorted by length, whose padded size stays within the limit.

    Texts much longer than the first of a run begin a new one, once that is large enough to
    be worth a pass: padding is computed like any token.
    """
    chunk: list[int] = []
    for i in order:
        size = lengths[i] * (len(chunk) + 1)
        shortest = lengths[chunk[0]] if chunk else lengths[i]
        if chunk and (size > limit or (size > _WORTH_A_PASS and lengths[i] > 1.5 * shortest)):
            yield chunk
            chunk = []
        chunk.append(i)
    if chunk:
        yield chunk


def _run(source: Source, encoding: Encoding, edits: list[Edit], of: str) -> Tensor:
    targets = [one.target for one in edits if one.target is not None]
    places = places_of(source, targets)
    if places is not None:
        targets = [_among(target, places) for target in targets]
    with torch.no_grad():
        rows = outputs(source, encoding, edits, places)
        values = [read(row, target, of) for row, target in zip(rows, targets, strict=True)]
    made = torch.cat(values).double().cpu()
    if not bool(made.isfinite().all()):
        raise NumericsError(
            "The model's prediction for an edited text holds NaN or infinity. Look at the weights "
            "of its head, or load it in float32 if it is in half precision."
        )
    return made


def _keeps(source: Source) -> bool:
    """Whether the model can put out its logits at some places alone: its head, often a third of
    its work, is then not run for every token."""
    return source.task == "causal_lm" and takes(source.model, "logits_to_keep")


def places_of(source: Source, targets: Sequence[Target]) -> list[int] | None:
    """Where logits are read, None for everywhere."""
    if not _keeps(source):
        return None
    found: set[int] = set()
    for target in targets:
        if target.position is None:
            return None
        found |= {target.position} if isinstance(target.position, int) else {*target.position}
    return sorted(found) if min(found) >= 0 else None


def _among(target: Target, places: list[int]) -> Target:
    """A target where only the logits at these places are."""
    position = target.position
    if isinstance(position, int):
        return replace(target, position=places.index(position))
    assert position is not None
    return replace(target, position=tuple(places.index(one) for one in position))


def outputs(
    source: Source, encoding: Encoding, edits: list[Edit], places: list[int] | None = None
) -> list[Row]:
    """What the model puts out for each of some edited texts, from one padded pass; with `places`
    its logits there alone."""
    model = source.model
    pad = pad_id(source)
    inputs: dict[str, Tensor] = {}
    if encoding.first_row:
        inputs["input_ids"] = padded([one.ids[: one.first_row] for one in edits], pad)
        inputs["attention_mask"] = padded([_seen(one, one.first_row) for one in edits], 0)
        # Padding comes after the prefix, where no token of it looks.
        inputs["decoder_input_ids"] = padded([one.ids[one.first_row :] for one in edits], pad)
    else:
        inputs["input_ids"] = padded([one.ids for one in edits], pad)
        inputs["attention_mask"] = padded([_seen(one, len(one.ids)) for one in edits], 0)
    if (types := encoding.inputs.get("token_type_ids")) is not None:
        held = types[0].tolist()
        inputs["token_type_ids"] = padded([[held[i] for i in one.kept] for one in edits], 0)
    inputs = {name: tensor.to(source.device) for name, tensor in inputs.items()}
    if places is not None:
        inputs["logits_to_keep"] = torch.tensor(places, device=source.device)
    with torch.no_grad():
        output = model(**inputs, **plain_output(model))
    if places is not None and output.logits.shape[1] != len(places):  # it is taken, and passed over
        output = SimpleNamespace(logits=output.logits[:, places])
    return [Row(output, row, len(one.ids)) for row, one in enumerate(edits)]


def _seen(one: Edit, length: int) -> list[int]:
    return [int(i not in one.unseen) for i in range(length)]


def pad_id(source: Source) -> int:
    """What stands in the place of missing tokens. A causal classifier finds the last token by
    the padding id of the model's own config."""
    pad = getattr(source.model.config, "pad_token_id", None)
    return pad if isinstance(pad, int) else (neutral_token(source, "pad")[0] or 0)


def padded(rows: list[list[int]], pad: int) -> Tensor:
    """Lists of numbers as one tensor, padded on the right."""
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=pad)


class Row:
    """One text's part of a model's output. Padding is on the right, so places are the same;
    a span's probability is shared among the text's own places."""

    def __init__(self, output: Any, row: int, length: int) -> None:
        for name in ("logits", "prediction_logits"):
            if (tensor := getattr(output, name, None)) is not None:
                setattr(self, name, tensor[row : row + 1])
        for name in ("start_logits", "end_logits"):
            if (tensor := getattr(output, name, None)) is not None:
                setattr(self, name, tensor[row : row + 1, :length])
