"""Answers: each token explained as the text before it, the whole as one; chats by template."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

from mixwidget import Explanation, explain, metrics
from mixwidget.errors import InputError, TextTooLongError, UnsupportedMethodError
from mixwidget.methods.registry import all_methods

TEMPLATE = (
    "{% for m in messages %}[CLS] {{ m['role'] }} , {{ m['content'] | trim }} [SEP]\n{% endfor %}"
    "{% if add_generation_prompt %}[CLS] film ,{% endif %}"
)
CHAT = [
    {"role": "the", "content": "it is a film ."},
    {"role": "user", "content": "the film is not bad . we saw it . is it good"},
]
ANSWER = "it is good ."


def asked(tiny: Any, family: str = "llama", head: str = "CausalLM") -> tuple[Any, Any]:
    tokenizer = tiny.tokenizer(pairs=False)
    tokenizer.chat_template = TEMPLATE
    return tiny.model(family, head), tokenizer


@pytest.fixture(scope="module")
def tiny() -> Any:
    from tests.lib import tiny

    return tiny


def template_ids(tokenizer: Any, chat: list[dict[str, str]]) -> list[int]:
    more = chat[-1]["role"] != "assistant"
    made = tokenizer.apply_chat_template(chat, tokenize=True, add_generation_prompt=more)
    return list(made["input_ids"])


def test_a_chat_is_what_the_template_gives(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, CHAT, "raw_attention", tokenizer=tokenizer)
    assert [token.id for token in e.tokens] == template_ids(tokenizer, CHAT)
    for number, message in enumerate(CHAT):
        inside = [token for token in e.tokens if token.message == number]
        assert {token.role for token in inside} == {message["role"]}
        read = [message["content"][token.start : token.end] for token in inside]
        assert read == message["content"].split()
        assert not any(token.special for token in inside)
    assert all(token.special for token in e.tokens if token.message is None)
    assert e.text == CHAT
    assert len(repr(e)) < 200


def test_the_assistants_last_message_is_the_answer(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    chat = [*CHAT, {"role": "assistant", "content": ANSWER}]
    e = explain(model, chat, "alti", tokenizer=tokenizer)
    assert [token.id for token in e.tokens] == template_ids(tokenizer, chat)
    assert [token.text for token in e.tokens[e.answer]] == ANSWER.split()
    assert e.by("messages").names == ["the", "user", "answer", "rest"]
    with pytest.raises(InputError, match="ends with the assistant"):
        explain(model, chat, "alti", tokenizer=tokenizer, answer=ANSWER)


@pytest.mark.parametrize(
    "method", [entry.id for entry in all_methods() if entry.id != "context_cite"]
)
@pytest.mark.parametrize("family", ["llama", "gpt2", "bart"])
def test_a_step_is_the_text_before_it_explained_alone(tiny: Any, family: str, method: str) -> None:
    decodes = family == "bart"
    model, tokenizer = asked(tiny, family, "Seq2SeqLM" if decodes else "CausalLM")
    text, answer = "the film is not bad", [9, 8, 11]
    try:
        e = explain(model, text, method, tokenizer=tokenizer, answer=answer)
    except UnsupportedMethodError:
        with pytest.raises(UnsupportedMethodError):  # for this family, not for answers
            explain(model, text, method, tokenizer=tokenizer)
        return
    assert e.answer is not None
    matrix = e.matrix
    assert matrix.shape == (3, len(e.tokens))
    for t, place in enumerate(range(e.answer.start, e.answer.stop)):
        written = " ".join(tokenizer.convert_ids_to_tokens(answer[:t]))
        given = {"text_pair": written or None} if decodes else {}
        read = text if decodes else f"{text} {written}"
        alone = explain(model, read, method, tokenizer=tokenizer, target=answer[t], **given)
        assert [x.id for x in alone.tokens] == [x.id for x in e.tokens[:place]]
        scale = max(float(np.abs(alone.scores).max()), 1e-12)
        assert np.abs(matrix[t, :place] - alone.scores).max() <= 1e-4 * scale
        assert not matrix[t, place:].any()
        step = e.step(t)
        assert np.array_equal(step.scores, matrix[t, :place])
        assert step.target.index == answer[t]
        if step.maps is not None and alone.maps is not None:
            assert step.maps.shape == alone.maps.shape
            assert np.abs(step.maps - alone.maps).max() <= 1e-4 * np.abs(alone.maps).max()


def test_the_whole_answer(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, CHAT, "alti", tokenizer=tokenizer, answer=ANSWER)
    assert np.allclose(e.scores, e.matrix.mean(0), atol=1e-6)
    ids = torch.tensor([[token.id for token in e.tokens]])
    with torch.no_grad():
        shares = model(input_ids=ids).logits[0].double().log_softmax(-1)
    each = [float(shares[t.position - 1, t.id]) for t in e.tokens[e.answer]]
    assert e.target.logit == pytest.approx(sum(each), abs=1e-5)
    # the gradient of the summed log probability, by hand
    embeddings = model.get_input_embeddings()(ids).detach().requires_grad_()
    logits = model(inputs_embeds=embeddings).logits[0].log_softmax(-1)
    total = sum(logits[t.position - 1, t.id] for t in e.tokens[e.answer])
    (slope,) = torch.autograd.grad(total, embeddings)
    sizes = (slope * embeddings)[0].norm(dim=-1).detach()
    made = explain(model, CHAT, "gradient_x_input", tokenizer=tokenizer, answer=ANSWER)
    assert np.allclose(made.scores, (sizes / sizes.sum()).numpy(), atol=1e-5)


def test_the_models_own_answer_is_the_greedy_one(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, CHAT, "alti", tokenizer=tokenizer, answer=True, max_new_tokens=7)
    ids = torch.tensor([template_ids(tokenizer, CHAT)])
    ends = {model.config.eos_token_id, tokenizer.eos_token_id}
    for _ in range(7):
        token = int(model(input_ids=ids).logits[0, -1].argmax())
        if token in ends:
            break
        ids = torch.cat([ids, torch.tensor([[token]])], -1)
    assert [token.id for token in e.tokens] == ids[0].tolist()


@pytest.mark.parametrize("units", ["tokens", "words", "sentences", "lines", "messages"])
def test_units_keep_sums(tiny: Any, units: str) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, CHAT, "gradient_x_input", tokenizer=tokenizer, answer=ANSWER)
    found = e.by(units)
    assert found.scores.sum() == pytest.approx(float(e.scores.sum()), abs=1e-5)
    assert np.allclose(found.matrix.sum(1), e.matrix.sum(1), atol=1e-5)
    if units == "sentences":
        assert found.names[:4] == ["it is a film .", "the film is not bad .", "we saw it .",
                                   "is it good"]  # fmt: skip
        assert found.spans[1] == (1, 0, 21)


def test_spans_of_ones_own(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, "we saw the film . it is bad", "alti", tokenizer=tokenizer, answer="not bad")
    found = e.by([(0, 6, "who"), (7, 15)])
    assert found.names == ["who", "the film", "rest"]
    assert found.scores[0] == pytest.approx(float(e.scores[:2].sum()))
    for wrong in ([(0, 99)], [(0,)], [], "pages"):
        with pytest.raises(InputError):
            e.by(wrong)


def test_a_token_rather_than_another(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, CHAT, "attcat", tokenizer=tokenizer, answer=ANSWER)
    step = e.step(2, foil="bad")
    bad = tokenizer.convert_tokens_to_ids("bad")
    assert step.target.index == (e.tokens[e.answer.start + 2].id, bad)
    with pytest.raises(InputError, match="leave out foil"):
        explain(model, CHAT, "alti", tokenizer=tokenizer, answer=ANSWER).step(0, foil="bad")


def test_one_answer_rather_than_another(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    pair = ("it is good .", "it is not bad .")
    ask = {"tokenizer": tokenizer}
    e = explain(model, CHAT, "attn_lrp", answer=pair, **ask)
    one, other = (explain(model, CHAT, "attn_lrp", answer=text, **ask) for text in pair)
    start = e.answer.start
    same = start + 2  # "it is" stands in both
    assert np.allclose(e.scores[:same], one.scores[:same] - other.scores[:same], atol=1e-6)
    assert np.allclose(e.scores[same:], one.scores[same:])
    total = e.scores.sum() - sum(e.info["against"]["scores"])
    assert total == pytest.approx(float(one.scores.sum() - other.scores.sum()), abs=1e-4)
    assert e.target.label == "it is good . rather than it is not bad ."
    assert e.target.logit == pytest.approx(one.target.logit - other.target.logit)
    assert e.by("messages").names == one.by("messages").names
    assert Explanation.from_json(e.to_json()).target.index == e.target.index
    with pytest.raises(UnsupportedMethodError, match="signed method"):
        explain(model, CHAT, "alti", answer=pair, **ask)
    with pytest.raises(InputError, match="one answer rather than another"):
        metrics.comprehensiveness(e, model, **ask)


def test_a_copy_says_what_it_lacks(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, CHAT, "attcat", tokenizer=tokenizer, answer=ANSWER)
    first = e.step(1)
    copy = pickle.loads(pickle.dumps(e))
    assert copy == e
    assert np.array_equal(copy.step(1).scores, first.scores)
    with pytest.raises(InputError, match="holds the steps 1"):
        copy.step(0)
    with pytest.raises(InputError, match="before it is stored"):
        copy.dependence  # noqa: B018
    whole = explain(model, CHAT, "attcat", tokenizer=tokenizer, answer=ANSWER, steps="all")
    assert np.array_equal(pickle.loads(pickle.dumps(whole)).matrix, e.matrix)


def test_dependence_is_what_the_last_message_brings(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, CHAT, "alti", tokenizer=tokenizer, answer=ANSWER)
    without = [{**CHAT[0]}, {"role": "user", "content": ""}]
    shares = []
    for chat in (CHAT, without):
        ids = template_ids(tokenizer, chat) + [t.id for t in e.tokens[e.answer]]
        with torch.no_grad():
            found = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
        shares.append([float(found[i - 1, ids[i]]) for i in range(len(ids) - 4, len(ids))])
    assert np.allclose(e.dependence, np.subtract(*shares), atol=1e-5)


def test_what_cannot_be_asked_is_refused_in_words(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    ask = {"tokenizer": tokenizer}
    image = [{"role": "user", "content": [{"type": "image", "url": "x.png"}]}]
    with pytest.raises(InputError, match="type 'image'"):
        explain(model, image, "alti", **ask)
    with pytest.raises(InputError, match="exclude"):
        explain(model, CHAT, "alti", answer="good", target="bad", **ask)
    with pytest.raises(InputError, match="exclude"):
        explain(model, "the film", "alti", answer="good", text_pair="bad", **ask)
    with pytest.raises(InputError, match="cannot be cut"):
        explain(model, CHAT, "alti", truncate=True, **ask)
    with pytest.raises(TextTooLongError):
        explain(model, [{"role": "user", "content": "good " * 80}], "alti", **ask)
    with pytest.raises(InputError, match="No answer"):
        explain(model, CHAT, "alti", **ask).matrix  # noqa: B018
    classifier = tiny.model("bert")
    with pytest.raises(UnsupportedMethodError, match="write text"):
        explain(classifier, "the film", "alti", answer="good", tokenizer=tiny.tokenizer())
    tokenizer.chat_template = None
    with pytest.raises(InputError, match="no chat template"):
        explain(model, CHAT, "alti", **ask)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"answer": " "}, "no token"),
        ({"answer": 1.5}, "it can be a text"),
        ({"answer": [9, 10_000]}, "not a token id"),
        ({"answer": True, "max_new_tokens": 0}, "from 1"),
        ({"answer": "it", "steps": "some"}, "'asked' or 'all'"),
    ],
)
def test_wrong_answers_are_refused_in_words(tiny: Any, given: dict[str, Any], said: str) -> None:
    model, tokenizer = asked(tiny)
    with pytest.raises(InputError, match=said):
        explain(model, CHAT, "alti", tokenizer=tokenizer, **given)
    with pytest.raises(InputError, match="Message 0 has no role"):
        explain(model, [{"content": "it"}], "alti", tokenizer=tokenizer)


def test_ids_in_any_form(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    forms = [9], (9,), 9, torch.tensor([9]), torch.tensor([[9]]), np.array([9])
    made = [explain(model, CHAT, "alti", tokenizer=tokenizer, answer=form) for form in forms]
    assert all([t.id for t in e.tokens[e.answer]] == [9] for e in made)
    with pytest.raises(InputError, match="own token"):
        explain(model, CHAT, "attcat", tokenizer=tokenizer, answer=[9]).step(0, foil=9)


def test_dependence_where_nothing_is_left_to_the_encoder(tiny: Any) -> None:
    model, tokenizer = asked(tiny, "bart", "Seq2SeqLM")
    e = explain(model, "the film is bad", "alti", tokenizer=tokenizer, answer="it is good")
    assert np.isfinite(e.dependence).all()


def test_text_parts_are_joined(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    parts = [{"role": "user", "content": [{"type": "text", "text": "the film "},
                                          {"type": "text", "text": "is bad"}]}]  # fmt: skip
    e = explain(model, parts, "alti", tokenizer=tokenizer)
    plain = [{"role": "user", "content": "the film is bad"}]
    assert [t.id for t in e.tokens] == template_ids(tokenizer, plain)


@pytest.mark.parametrize("method", ["alti", "attcat"])
def test_an_answer_as_json(tiny: Any, method: str) -> None:
    model, tokenizer = asked(tiny)
    e = explain(model, CHAT, method, tokenizer=tokenizer, answer=ANSWER, steps="all")
    copy = Explanation.from_json(e.to_json())
    assert copy == e
    assert np.array_equal(copy.matrix, e.matrix)
    assert copy.by("messages").names == e.by("messages").names
    assert copy.to_json() == e.to_json()


PROMPT = "the film is bad . we saw it . the plot is thin ."


def by_hand(model: Any, tokenizer: Any, prompt: str, answer: list[int]) -> float:
    """Log probability of the answer after a prompt, in float64."""
    ids = [*tokenizer(prompt)["input_ids"], *answer]
    with torch.no_grad():
        shares = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
    start = len(ids) - len(answer)
    return sum(float(shares[start - 1 + i, token]) for i, token in enumerate(answer))


def test_units_are_taken_away_whole(tiny: Any) -> None:
    model, tokenizer = asked(tiny)
    answer = [9, 8, 11]
    e = explain(model, PROMPT, "blank_out", tokenizer=tokenizer, answer=answer,
                units="sentences", by="delete")  # fmt: skip
    sentences = ["the film is bad .", "we saw it .", "the plot is thin ."]
    assert e.info["names"] == sentences
    whole = by_hand(model, tokenizer, PROMPT, answer)
    for number, sentence in enumerate(sentences):
        left = " ".join(one for one in sentences if one != sentence)
        fall = whole - by_hand(model, tokenizer, left, answer)
        assert e.info["values"][number] == pytest.approx(fall, abs=1e-5)
        tokens = e.info["units"][number]
        assert np.allclose(e.scores[list(tokens)], fall / len(tokens), atol=1e-5)
    assert not e.scores[e.answer].any()


def test_context_cite_is_the_released_fit(tiny: Any) -> None:
    from sklearn.linear_model import Lasso
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model, tokenizer = asked(tiny)
    answer, spans = [9, 8, 11], [(0, 17), (18, 29), (30, 48)]
    e = explain(model, PROMPT, "context_cite", tokenizer=tokenizer, answer=answer, units=spans,
                samples=24, alpha=0.001, seed=3)  # fmt: skip
    masks = np.stack(
        [
            np.random.RandomState(3 + k).choice([False, True], size=3, p=[0.5, 0.5])
            for k in range(24)
        ]
    )
    values = []
    for mask in masks:
        gone = [span for span, stays in zip(spans, mask, strict=True) if not stays]
        left = [c for i, c in enumerate(PROMPT) if not any(a <= i < b for a, b in gone)]
        text = "".join(left) if "".join(left).strip() else tokenizer.cls_token
        share = by_hand(model, tokenizer, text, answer)
        values.append((share - np.log1p(-np.exp(share))) / 3)
    scaler, lasso = StandardScaler(), Lasso(alpha=0.001, random_state=0)
    make_pipeline(scaler, lasso).fit(masks.astype(np.float32), np.array(values))
    assert np.allclose(e.info["values"], lasso.coef_ / scaler.scale_ * 3, atol=1e-5)
    assert np.abs(e.info["values"]).max() > 0
    for number, (start, end) in enumerate(spans):
        inside = [t.position for t in e.tokens[: e.answer.start] if start <= t.start < end]
        assert np.allclose(e.scores[inside].sum(), e.info["values"][number], atol=1e-5)


def test_context_cite_is_for_answers(tiny: Any) -> None:
    with pytest.raises(UnsupportedMethodError, match="language model"):
        explain(tiny.model("bert"), "the film", "context_cite", tokenizer=tiny.tokenizer())
