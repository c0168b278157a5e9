"""From a text to an explanation: the one engine behind `explain`, `stream` and the widget."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..errors import CancelledError, UnsupportedMethodError
from ..explanation import Explanation, Part
from ..methods import MethodId, Run, check_defined, get_method, recommended
from ..models import (
    Case,
    answering_row,
    as_it_was,
    check_focus,
    encode_question,
    open_source,
    resolve_target,
    spelling_of,
    whole_target,
)
from ..tokens import Target
from .answers import answered, by_steps, check_asked, token_by_token


@as_it_was
def prepare(
    model: Any,
    text: Any,
    *,
    tokenizer: Any = None,
    text_pair: str | None = None,
    truncate: bool = False,
    answer: Any = None,
    max_new_tokens: int = 64,
) -> Case:
    """Find the model and tokenize the text or chat. Nothing is run yet, but for an answer that
    the model is to write, or whose spelling it is asked for."""
    source = open_source(model, tokenizer)
    encoding = encode_question(source, text, text_pair, truncate, answer, max_new_tokens)
    return Case(source, encoding)


@as_it_was
def start(
    case: Case,
    method: str,
    *,
    target: Any = None,
    focus: Any = None,
    params: dict[str, Any] | None = None,
    cancelled: Callable[[], bool] | None = None,
    report: Callable[[float], None] | None = None,
) -> Run:
    """Check everything that can be checked beforehand, and make the recorded pass if the method
    reads it. One that runs the model itself finds its target in its own pass."""
    entry = get_method(method)
    options = entry.options(params or {})
    answer = case.encoding.answer
    if answer is not None:
        check_asked(target, focus)
        focus = answer.stop - 2
    row = check_focus(focus, case.source, case.encoding)
    check = None
    if cancelled is not None:

        def check() -> None:
            if cancelled():
                raise CancelledError("cancelled")

    def find(output: Any) -> Target:
        if answer is None:
            resolved = resolve_target(target, case.source, case.encoding, output, row)
        else:
            resolved = whole_target(case.encoding, output)
        check_defined(entry, case.source, resolved)
        if focus is None:
            run.focus = answering_row(case.source, case.encoding, resolved)
        spelt = None if answer is not None else target
        run.info |= spelling_of(spelt, case.source, case.encoding, output, row)
        return resolved

    check_defined(entry, case.source)
    run = Run(case, entry, row, find, options)
    run.info |= case.encoding.told
    if entry.records or case.recorded:
        run.resolved(case.trace(check).output)
    if cancelled is not None:
        run.cancelled = cancelled
    if report is not None:
        run.report = report
    return run


def parts(run: Run) -> Iterator[Part]:
    """The method's parts as they are computed, then the proof that the layers they stand on add
    up. Closing the generator ends the work."""
    if run.encoding.answer is not None and token_by_token(run.method):
        work = by_steps(run, _again(run))
    else:
        work = run.method.run(run, **run.options)
    try:
        made = iter(lambda: _next(run, work), None)
        if not run.case.recorded:  # the method made a pass of its own
            yield from filter(None, made)
            return
        yield from _with_the_silent(run, made)
        for layer in range(len(run.trace)):
            run.check()
            run.case.adds_up(layer)
    finally:
        _close(work)


def _with_the_silent(run: Run, made: Iterator[Part | None]) -> Iterator[Part]:
    """A method's parts, and between them those of the layers that do not attend, of which it
    knows nothing: every token is passed on as it is."""
    down = run.method.downward
    silent = set(range(len(run.trace))) - set(run.trace.attending)
    for part in made:
        assert part is not None  # where it ends
        if part.layer is not None:
            silent.discard(part.layer)
            before = [k for k in silent if (k > part.layer if down else k < part.layer)]
            yield from (_passed_on(run, layer) for layer in sorted(before, reverse=down))
            silent.difference_update(before)
        yield part
    if run.method.yields != "scores":
        yield from (_passed_on(run, layer) for layer in sorted(silent, reverse=down))


def _passed_on(run: Run, layer: int) -> Part:
    n = run.trace.tokens
    run.info.setdefault("passed_on", []).append(layer)
    if run.method.yields == "layer_scores":
        return Part(layer, None, np.zeros(n, np.float32))
    itself = 0.0 if run.method.combine == "with_identity" else 1.0
    return Part(layer, itself * np.eye(n, dtype=np.float32), None)


@as_it_was
def _next(run: Run, work: Iterator[Part]) -> Part | None:
    """The next part; between two parts the thread is the caller's."""
    try:
        with torch.set_grad_enabled("gradients" in run.method.needs):
            return next(work, None)
    except RuntimeError as error:
        if not any(words in str(error) for words in ("inplace operation", "in-place operation")):
            raise
        raise UnsupportedMethodError(
            "This model's own code overwrites numbers that a gradient needs (it could not be "
            f"trained like this either), so {run.method.title} cannot follow a prediction down "
            "through it. Methods without gradients can: value_zeroing, blank_out."
        ) from error


@as_it_was
def _close(work: Any) -> None:
    work.close()


def assemble(run: Run, collected: Sequence[Part], seconds: float = 0.0) -> Explanation:
    """The parts of a finished run as one Explanation. Computes nothing."""
    layered = sorted((p for p in collected if p.layer is not None), key=lambda p: p.layer or 0)
    maps = [p.map for p in layered if p.map is not None]
    scores = [p.scores for p in layered if p.scores is not None]
    heads = [p.heads for p in layered if p.heads is not None]
    own = next((p.scores for p in collected if p.layer is None), None)
    _tell_of_layers_without_attention(run)
    info: dict[str, Any] = {
        "model": run.source.name,
        "adds_up": run.case.known_errors(),
        "seconds": seconds,
    }
    if run.case.recorded and any(run.trace.names):
        info["layers"] = run.trace.names
    target = run.target
    info |= run.info
    for part in collected:
        info.update(part.info)
    made = Explanation(
        method=run.method.id,
        tokens=run.encoding.tokens,
        focus=run.focus,
        target=target,
        maps=_whole(maps),
        layer_scores=np.stack(scores) if scores else None,
        own_scores=own,
        params=run.options,
        info=info,
        combine=run.method.combine,
        scores_from=run.method.scores_from,
        text=run.encoding.text,
        text_pair=run.encoding.text_pair,
        head_scores=_stacked(heads),
    )
    return answered(run, made, _again(run)) if run.target.kind == "answer" else made


def _again(run: Run) -> Callable[[Case, Any], Explanation]:
    """The same method with the same options for another text and target."""
    method, options = run.method.id, run.options

    def explained(case: Case, target: Any) -> Explanation:
        return explain_case(case, method, target=target, **options)

    return explained


def _tell_of_layers_without_attention(run: Run) -> None:
    """What was mixed by other means than attention goes into the run's info; where the method
    takes no notice of it, with a warning."""
    if not run.case.recorded:
        return
    trace, beside = run.trace, run.source.anatomy.beside
    unlike = sorted(set(range(len(trace))) - set(trace.attending))
    shares = {layer: trace.written(layer) for layer in unlike}
    passed = run.info.pop("passed_on", [])
    if unlike:
        run.info["without_attention"] = {k: round(share, 4) for k, share in shares.items()}
    if beside:
        run.info["beside_attention"] = sorted(beside)
    who = f"{run.source.name}: {run.method.id}"
    if passed:
        listed = ", ".join(f"{k} ({shares[k]:.0%})" for k in sorted(passed))
        warnings.warn(
            f"{who} takes every token as passed on unchanged by the layers without attention, "
            "though these write to the residual stream. Layers, and the share of what leaves them "
            f"that they wrote: {listed}. value_zeroing maps them too.",
            stacklevel=4,
        )
    if beside and run.method.yields != "scores":
        warnings.warn(
            f"{who} follows attention alone, but layers {', '.join(map(str, sorted(beside)))} also "
            "mix tokens beside it (a recurrence or a convolution), which is in none of its maps.",
            stacklevel=4,
        )


def in_place(run: Run, made: Iterator[Part]) -> Iterator[Part]:
    """The same parts, their maps written into one array as they come: long texts' fit once."""
    whole: Any = None
    for part in made:
        if part.map is None or part.layer is None or not run.case.recorded:
            yield part
            continue
        if whole is None:
            whole = np.empty((len(run.trace), *part.map.shape), dtype=np.float32)
        whole[part.layer] = part.map
        yield replace(part, map=whole[part.layer])


def _whole(maps: list[Any]) -> Any:
    """[layers, n, n], without a copy where the maps were written into one array."""
    base = maps[0].base if maps else None
    if base is not None and len(base) == len(maps) and all(map.base is base for map in maps):
        return base
    return np.stack(maps) if maps else None


def _stacked(heads: list[Any]) -> Any:
    """[layers, heads, n] of layers that may have unlike numbers of heads."""
    if not heads:
        return None
    most = max(len(one) for one in heads)
    if all(len(one) == most for one in heads):
        return np.stack(heads)
    return np.stack([np.pad(one, ((0, most - len(one)), (0, 0))) for one in heads])


def stream(
    model: Any,
    text: Any,
    method: MethodId | str | None = None,
    *,
    tokenizer: Any = None,
    text_pair: str | None = None,
    target: Any = None,
    focus: Any = None,
    answer: Any = None,
    max_new_tokens: int = 64,
    truncate: bool = False,
    **params: Any,
) -> Iterator[Part]:
    """The same as `explain`, layer by layer as they are computed.

    Input is checked at the call, not at the first part.

    >>> from mixwidget import demo, stream
    >>> [part.layer for part in stream(demo.load()[0], "not bad", "globenc")]
    [0, 1, 2, 3]
    """
    case = prepare(
        model,
        text,
        tokenizer=tokenizer,
        text_pair=text_pair,
        truncate=truncate,
        answer=answer,
        max_new_tokens=max_new_tokens,
    )
    method = recommended(case.source)[0] if method is None else method
    return parts(start(case, method, target=target, focus=focus, params=params))


@as_it_was
def _carried_out(case: Case, method: str, given: dict[str, Any]) -> tuple[Run, list[Part]]:
    """A run from start to end: the thread is put back once, not after every part."""
    run = start(case, method, **given)
    return run, list(in_place(run, parts(run)))


def explain_case(
    case: Case,
    method: str,
    *,
    target: Any = None,
    focus: Any = None,
    cancelled: Callable[[], bool] | None = None,
    **params: Any,
) -> Explanation:
    """`explain` on a case, so that several methods share its recorded pass."""
    begin = time.perf_counter()
    given = {"target": target, "focus": focus, "params": params, "cancelled": cancelled}
    run, collected = _carried_out(case, method, given)
    case.warn()
    return assemble(run, collected, time.perf_counter() - begin)


@as_it_was
def finish(run: Run, begin: float) -> Explanation:
    """A run that was started, to its end. `begin`: when its work began."""
    collected = list(in_place(run, parts(run)))
    run.case.warn()
    return assemble(run, collected, time.perf_counter() - begin)
