"""`explain`: one text or many, to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from ..errors import InputError
from ..explanation import Explanation, Failure
from ..methods import MethodId, get_method, recommended
from ..models import SeveralTokensError, open_source
from .answers import check_asked, contrasted, is_pair
from .asked import asked, count_of, for_one, is_many
from .many import Errors, Keep, Many, Result
from .verbs import explain_case, prepare

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..methods import Options

# Arguments whose names are options of some methods too, with what they may be here.
_ALSO_OPTIONS = {"steps": ("asked", "all"), "keep": ("all", "scores")}

Progress = bool | Callable[[int, int | None], object]


@overload
def explain(
    model: Any,
    text: str | list[dict[str, Any]],
    method: MethodId | None = None,
    *,
    tokenizer: Any = None,
    text_pair: str | None = None,
    target: Any = None,
    focus: Any = None,
    truncate: bool = False,
    answer: Any = None,
    max_new_tokens: int = 64,
    steps: Literal["asked", "all"] | int = "asked",
    **params: Unpack[Options],
) -> Explanation: ...


@overload
def explain(
    model: Any,
    text: Iterable[Any],
    method: MethodId | None = None,
    *,
    tokenizer: Any = None,
    text_pair: Any = None,
    text_pairs: Any = None,
    target: Any = None,
    targets: Any = None,
    focus: Any = None,
    truncate: bool = False,
    errors: Literal["raise"] = "raise",
    progress: Progress = False,
    keep: Keep | float = "all",
    **params: Unpack[Options],
) -> list[Explanation]: ...


@overload
def explain(
    model: Any,
    text: Iterable[Any],
    method: MethodId | None = None,
    *,
    tokenizer: Any = None,
    text_pair: Any = None,
    text_pairs: Any = None,
    target: Any = None,
    targets: Any = None,
    focus: Any = None,
    truncate: bool = False,
    errors: Literal["row"],
    progress: Progress = False,
    keep: Keep | float = "all",
    **params: Unpack[Options],
) -> list[Result]: ...


@overload  # methods of one's own, whose options nobody knows
def explain(
    model: Any, text: str | list[dict[str, Any]], method: str | None = None, **params: Any
) -> Explanation: ...


@overload
def explain(
    model: Any,
    text: Iterable[Any],
    method: str | None = None,
    *,
    errors: Literal["raise"] = "raise",
    **params: Any,
) -> list[Explanation]: ...


@overload
def explain(
    model: Any,
    text: Iterable[Any],
    method: str | None = None,
    *,
    errors: Literal["row"],
    **params: Any,
) -> list[Result]: ...


def explain(
    model: Any,
    text: Any,
    method: MethodId | str | None = None,
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
    keep: Keep | float = "all",
    answer: Any = None,
    max_new_tokens: int = 64,
    steps: Literal["asked", "all"] | int = "asked",
    **params: Any,
) -> Explanation | list[Explanation] | list[Result]:
    """Explain a text, or many: how its tokens mix, or which of them drove the prediction.

    Args:
        model: a transformers model, the name or folder of one, or a pipeline.
        text: one text, or several (list, tuple, Series, array, generator, column of a dataset):
            then a list of explanations comes back, in the same order.
        method: an id from `methods()`; None: the one recommended for this kind of model, which
            `info["recommended"]` gives the reason for.
        tokenizer: needed only if it cannot be found from the model.
        text_pair: the second text of a pair; of several texts `text_pairs` has one for each.
        target: class (index or name), token (id or text), (start, end) for question answering, or
            a pair of targets for a contrast; None: what the model predicts. `targets`: one each.
        focus: the token whose row is read, index or text; None: [CLS], the mask, the last token;
            where a question is answered the answer's first.
        answer: of a language model: a text, token ids, or True for what it writes itself, at most
            `max_new_tokens`. What the answer came from is explained: see `Explanation.matrix`. A
            pair of answers (for, against): why one rather than the other, by a signed method.
        steps: "all" explains each of the answer's tokens beforehand, "asked" when it is asked for.
        truncate: cut a text that is too long instead of raising.
        errors: "raise" stops at the first text that fails and names it, "row" leaves a `Failure`.
        progress: True shows a bar; a function is called with how many are done, and of how many.
        keep: "scores" drops maps and layer scores: memory hardly grows with the number of texts.
        **params: the method's own options, see `methods()`.

    >>> from mixwidget import demo, explain
    >>> e = explain(demo.load()[0], "not bad", "attcat")
    >>> [word for word, score in e.word_scores]
    ['[CLS]', 'not', 'bad', '[SEP]']
    """
    own = _meant(method, params, steps=steps, keep=keep)
    if method is not None:  # a wrong name is cheaper to find before loading a model
        get_method(method).options(params)
    if not is_many(text):
        for_one(text_pairs=text_pairs, targets=targets)
        options = {"text_pair": text_pair, "truncate": truncate, "max_new_tokens": max_new_tokens}
        source = open_source(model, tokenizer)
        named, why = (method, None) if method is not None else recommended(source)
        if answer is not None and (target is not None or focus is not None):
            check_asked(target, focus)
        if is_pair(answer):
            made = _rather(source, text, named, answer, options, params)
            return _told(made, why, own["steps"])
        case = prepare(source, text, answer=answer, **options)
        try:
            made = explain_case(case, named, target=target, focus=focus, **params)
        except SeveralTokensError:
            if focus is not None or text_pair is not None:
                raise
            case = prepare(source, text, answer=target, **options)
            made = explain_case(case, named, **params)
        return _told(made, why, own["steps"])
    if answer is not None:
        raise InputError("answer is for one text; explain several one after the other.")
    each = asked(text, text_pair if text_pairs is None else text_pairs, target, targets)
    source = open_source(model, tokenizer)
    named = recommended(source)[0] if method is None else method
    many = Many(source, named, focus, truncate, params, errors, own["keep"])
    return list(shown(many.explained(each), count_of(text), progress))


def _told(made: Explanation, why: str | None, steps: str) -> Explanation:
    if why is not None:
        made.info["recommended"] = why
    if steps == "all" and made.answer is not None:
        made.matrix  # noqa: B018 computes every row
    return made


def _rather(
    source: Any,
    text: Any,
    method: str,
    pair: Sequence[Any],
    options: dict[str, Any],
    params: dict[str, Any],
) -> Explanation:
    """One whole answer rather than another."""
    entry = get_method(method)
    signed = entry.signed or params.get("norm") == "sum"
    cases = [prepare(source, text, answer=one, **options) for one in pair]
    made, against = (explain_case(case, method, **params) for case in cases)
    return contrasted(made, against, signed and entry.class_specific)


def _meant(method: str | None, params: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Arguments whose names are options of some methods too: a value that is none of ours goes to
    the method, if it has such an option."""
    options = set() if method is None else {param.name for param in get_method(method).params}
    for name, value in given.items():
        ours = _ALSO_OPTIONS[name]
        if isinstance(value, str) and value in ours:
            continue
        if name not in options:
            raise InputError(f"{name} is {value!r}; it can be {' or '.join(map(repr, ours))}.")
        params[name], given[name] = value, ours[0]
    return given


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
