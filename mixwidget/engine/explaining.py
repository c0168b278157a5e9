"""`explain`: one text or many, to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, overload

from ..errors import InputError
from ..explanation import Explanation, Failure
from ..methods import get_method
from ..models import open_source
from .asked import asked, count_of, is_many
from .many import Errors, Keep, Many, Result
from .verbs import explain_case, prepare

Progress = bool | Callable[[int, int | None], object]


@overload
def explain(
    model: Any,
    text: str,
    method: str = "alti",
    *,
    tokenizer: Any = None,
    text_pair: str | None = None,
    target: Any = None,
    focus: Any = None,
    truncate: bool = False,
    **params: Any,
) -> Explanation: ...


@overload
def explain(
    model: Any,
    text: Iterable[Any],
    method: str = "alti",
    *,
    tokenizer: Any = None,
    text_pair: Any = None,
    text_pairs: Any = None,
    target: Any = None,
    targets: Any = None,
    focus: Any = None,
    truncate: bool = False,
    errors: Errors = "raise",
    progress: Progress = False,
    keep: Keep = "all",
    **params: Any,
) -> list[Any]: ...


def explain(
    model: Any,
    text: Any,
    method: str = "alti",
    *,
    tokenizer: Any = None,
    text_pair: Any = None,
    text_pairs: Any = None,
    target: Any = None,
    targets: Any = None,
    focus: Any = None,
    truncate: bool = False,
    errors: Errors = "raise",
    progress: Progress = False,
    keep: Keep = "all",
    **params: Any,
) -> Explanation | list[Result]:
    """Explain a text, or many: how its tokens mix, or which of them drove the prediction.

    Args:
        model: a transformers model, the name or folder of one, or a pipeline.
        text: one text; or several as a list, a tuple, a Series, an array, a generator or a
            column of a dataset: then a list of explanations comes back, in the same order.
        method: an id from `methods()`.
        tokenizer: needed only if it cannot be found from the model.
        text_pair: the second text of a pair; `text_pairs` has one for each of several texts.
        target: class (index or name), token (id or text), (start, end) for question
            answering, or a pair of targets for a contrast; None means what the model predicts.
            It is the same for all texts; `targets` has one for each.
        focus: the token whose row is read, by its index or its text; None means [CLS], the
            mask, or the last token.
        truncate: cut a text that is too long instead of raising.
        errors: of several texts: "raise" stops at the first that fails and names it, "row"
            leaves a `Failure` in its place.
        progress: of several texts: True shows a bar; a function is called with the number that
            is done and of all (None if unknown).
        keep: of several texts: "scores" drops maps and layer scores, so that the memory needed
            hardly grows with their number.
        **params: the method's own options, see `methods()`.

    Example:
        >>> from mixwidget import demo, explain
        >>> model, tokenizer = demo.load()
        >>> e = explain(model, "not bad", "attcat", tokenizer=tokenizer)
        >>> [word for word, _ in e.word_scores]
        ['[CLS]', 'not', 'bad', '[SEP]']
        >>> found = explain(model, ["not bad", ""], tokenizer=tokenizer, errors="row")
        >>> found[1]
        <Failure 1: '', InputError: text is empty; give it at least one word.>
    """
    get_method(method).options(params)  # a wrong name is cheaper to find before loading a model
    if not is_many(text):
        for name, value in (("text_pairs", text_pairs), ("targets", targets)):
            if value is not None:
                raise InputError(f"{name} is for several texts; for one pass {name[:-1]}=...")
        case = prepare(model, text, tokenizer=tokenizer, text_pair=text_pair, truncate=truncate)
        return explain_case(case, method, target=target, focus=focus, **params)
    pairs = text_pair if text_pairs is None else text_pairs
    each = asked(text, pairs, target, targets)
    source = open_source(model, tokenizer)
    many = Many(source, method, focus, truncate, params, errors, keep)
    return list(shown(many.explained(each), count_of(text), progress))


def shown(results: Iterator[Result], total: int | None, progress: Progress) -> Iterator[Result]:
    """The same results, with progress shown as they come."""
    if callable(progress):
        for done, result in enumerate(results, 1):
            progress(done, total)
            yield result
    elif progress:
        from tqdm.auto import tqdm

        failed = 0
        with tqdm(total=total, unit="text", desc="explain") as bar:
            for result in results:
                failed += isinstance(result, Failure)
                if failed:
                    bar.set_postfix(failed=failed)
                bar.update()
                yield result
    else:
        yield from results
