"""Train the embedded demo model: a small BERT sentiment classifier, distilled on CPU.

    python tools/train_demo.py --data DIR --teacher DIR --out mixwidget/demo/model
    python tools/train_demo.py --data DIR --teacher DIR --out DIR --seeds 0 1 2 3

With several seeds a model of each is written into a folder of --out: the same text and vocabulary,
another start, another order and other dropout, for `benchmark([one, other], ..., "agreement")`.

``--data`` holds the SST-2 files (``sst2_train_phrases_a.tsv``, ``sst2_train_phrases_b.tsv``,
``sst2_train_sentences.tsv``, ``sst2_dev.tsv``; ``sst2_test.tsv`` is read with ``--test`` only),
``--teacher`` a BERT sentiment classifier with a WordPiece vocabulary.

The steps: a vocabulary that is a subset of the teacher's, so that teacher and student can read
the very same tokens; training text = SST-2, the same with replaced words, and rule-labelled
negations and contrasts; one pass of the teacher over all of it (logits and hidden states); a
student whose weights are cut out of the teacher's; training on both; fp16 export; evaluation.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    PreTrainedTokenizerFast,
)

from mixwidget.demo import SENTENCE

NEGATIONS = Path(__file__).with_name("negations.tsv")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LABELS = ["negative", "positive"]
MAX_LENGTH = 128
NEGATED = re.compile(r"\b(not|never|no|nothing|nobody|neither|nor|hardly|without)\b|n't\b")

# --- Rule-labelled text: what the treebank has too little of ------------------------------------


def split(table: str) -> list[str]:
    """The entries of a table written as ``a|b|c`` over several lines."""
    return table.replace("\n", "").split("|")


ADJECTIVES = {
    1: """good great funny exciting interesting moving charming clever convincing believable
    original fresh engaging entertaining enjoyable beautiful smart witty touching powerful
    memorable satisfying subtle brilliant impressive compelling likable fun thrilling inventive
    inspired worthwhile delightful sharp lively rewarding wonderful amusing scary involving deep
    special coherent intelligent warm excellent""",
    0: """bad boring dull predictable stupid silly tedious annoying awful terrible slow shallow
    pointless lame bland tired flat dumb empty pretentious clumsy forgettable disappointing
    ridiculous weak painful messy cheap trite clichéd contrived lifeless stale tiresome ugly
    confusing sloppy generic mediocre obvious sentimental thin heavy-handed manipulative
    offensive wrong horrible""",
}
VERBS = {
    1: "like enjoy love recommend admire appreciate buy believe",
    0: "hate regret dislike mind despise resent",
}
ACTS = {
    1: "work:works satisfy:satisfies entertain:entertains convince:convinces deliver:delivers "
    "impress:impresses surprise:surprises thrill:thrills succeed:succeeds shine:shines",
    0: "bore:bores disappoint:disappoints drag:drags fail:fails annoy:annoys irritate:irritates "
    "stumble:stumbles preach:preaches overstay its welcome:overstays its welcome",
}
SUBJECTS = split("""it|this|this movie|this film|the movie|the film|the plot|the story|the acting
|the script|the dialogue|the humor|the ending|the direction|the cast|the pacing|the comedy
|the lead|the screenplay|the whole thing""")
PLURALS = split("the jokes|the characters|the performances|the actors|the scenes|the songs")
OBJECTS = split("it|this|this movie|this film|the movie|the film|it much|the story|the ending")
FLIP = split("""{s} {is} not {a}|{s} {isnt} {a}|{s} {wasnt} {a}|{s} {is} never {a}|not {a}
|not {a} at all|never {a}|{s} {is} not {a} at all|{s} {isnt} {a} at all|{s} {is} not at all {a}
|{s} {is} hardly {a}|{s} {is} far from {a}|{s} {is} anything but {a}|nothing {a} about {o}
|there is nothing {a} about {o}|there's nothing {a} in {o}|{s} never {feel} {a}|{s} never {get} {a}
|{s} never {become} {a}|{s} {dont} seem {a}|{s} {dont} feel {a}|{s} {is} neither {a} nor {b}
|{s} {isnt} {a} or {b}|{s} {is} not {a} or {b}|never {a} or {b}|i didn't find {o} {a}
|i don't think {s} {is} {a}|not particularly {a}|{s} {isnt} particularly {a}|{s} {isnt} very {a}
|{s} {is} not very {a}|{s} {isnt} really {a}|not even {a}|nobody would call {o} {a}
|i wouldn't call {o} {a}|not {a} , not {b}|not a {a} moment|without a {a} moment
|{s} {is} not a bit {a}|{s} {is} never once {a}|{s} can't be called {a}""")
KEEP = split("""{s} {is} {a}|{s} {was} {a}|{s} {is} really {a}|{s} {is} so {a}|{a}|{a} and {b}
|very {a}|{s} {is} both {a} and {b}|{s} {is} not only {a} but {b}|not only {a} , but {b}
|not just {a}|{s} {feel} {a}|{s} {is} always {a}|{s} {is} {a} and {b}|i found {o} {a}
|nothing but {a}|{s} {get} more {a}|how {a}|{s} {is} {a} , no doubt|{a} from start to finish""")
PHRASES = {
    1: """there is nothing wrong with {o}|nothing wrong with {o}|you won't regret {o}
|you won't be bored|you will not be sorry|i wasn't disappointed|i was not bored
|you won't want to miss {o}|don't miss {o}|not to be missed|i have no complaints about {o}
|no complaints|it couldn't be better|never a dull moment|not a wasted moment|can't be beat
|i can't recommend {o} enough|i couldn't look away|worth watching|worth seeing|worth your time
|{s} never lets you down|there isn't a false note|without a false note|can't go wrong""",
    0: """there is nothing right with {o}|not worth seeing|not worth your time|{s} {isnt} worth it
|not worth the price|don't bother|don't waste your time|i wasn't impressed|i was not amused
|i wasn't entertained|you won't like {o}|you won't laugh|you won't care|i couldn't care less
|nobody will like {o}|no fun|no fun at all|no laughs|it couldn't be worse|i can't recommend {o}
|{s} {dont} make sense|there is nothing to see here|nothing works|never worth it
|not much to like|not a single laugh|i couldn't wait for {o} to end|without any charm
|i don't get it|never funny|{s} never comes to life""",
}


def fill(frame: str, a: str, b: str, rng: random.Random) -> str:
    """One frame with subject, agreeing verbs, object and adjectives filled in."""
    many = rng.random() < 0.25
    words = {"s": rng.choice(PLURALS if many else SUBJECTS), "o": rng.choice(OBJECTS[:6])}
    words |= {"is": "are", "was": "were"} if many else {"is": "is", "was": "was"}
    words |= {"isnt": words["is"] + "n't", "wasnt": words["was"] + "n't"}
    words |= {"dont": "don't" if many else "doesn't"}
    words |= {v: v if many else v + "s" for v in ("feel", "get", "become")}
    text = frame.format(a=a, b=b, **words)
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


def clause(rng: random.Random) -> tuple[str, int]:
    """A short plain or negated statement and the polarity that the rules give it."""
    polarity, kind = rng.randrange(2), rng.random()
    if kind < 0.72:
        a, b = rng.sample(ADJECTIVES[polarity].split(), 2)
        flip = kind < 0.48
        return fill(rng.choice(FLIP if flip else KEEP), a, b, rng), polarity ^ flip
    if kind < 0.82:
        verb, obj = rng.choice(VERBS[polarity].split()), rng.choice(OBJECTS)
        frames = ["i didn't {}", "i did not {}", "i don't {}", "you won't {}", "i never {}ed"]
        frame = rng.choice([*frames, "i really {}", "you will {}", "i {}"])
        text = f"{frame.format(verb)} {obj}".replace("eed ", "ed ")
        return text, polarity ^ (NEGATED.search(text) is not None)
    if kind < 0.92:
        base, third = rng.choice(re.findall(r"(\w[\w ]*):(\w+(?: its welcome)?)", ACTS[polarity]))
        frame = rng.choice(["{s} doesn't {}", "{s} does not {}", "{s} never {3}", "{s} {3}"])
        text = frame.replace("{s}", rng.choice(SUBJECTS)).replace("{3}", third).replace("{}", base)
        return text, polarity ^ (NEGATED.search(text) is not None)
    frames = split(PHRASES[polarity])
    return fill(rng.choice(frames), "", "", rng), polarity


def contrast(rng: random.Random) -> tuple[str, int]:
    """Two clauses of opposite polarity; the one that the speaker ends on decides."""
    while True:
        (first, p), (last, q) = clause(rng), clause(rng)
        if p != q:
            joint = rng.choice(["{} , but {}", "{} , yet {}", "{} but {}", "although {} , {}"])
            return joint.format(first, last), q


def rule_labelled(rng: random.Random, clauses: int, contrasts: int) -> dict[str, int]:
    """Distinct clauses and contrasts, half of them ending in a full stop."""
    out: dict[str, int] = {}
    for make, count in ((clause, clauses), (contrast, contrasts)):
        for _ in range(count):
            text, label = make(rng)
            out[text + " ." * (rng.random() < 0.5)] = label
    return out


# --- Text and vocabulary ------------------------------------------------------------------------


def read(path: Path) -> list[tuple[str, int]]:
    """(sentence, label) rows of a headed, unquoted tsv file."""
    with path.open(encoding="utf-8", newline="") as f:
        rows = csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return [(row[0].strip(), int(row[1])) for row in rows]


def as_typed(text: str) -> str:
    """Treebank spacing to what people type: ``did n't`` to ``didn't``, ``it 's`` to ``it's``."""
    return re.sub(r" (?=n't\b|'(?:s|re|ve|ll|d|m)\b)", "", text)


def key(text: str) -> str:
    """What makes two texts the same one: case, spacing and end punctuation do not count."""
    return re.sub(r"\s+", " ", as_typed(text.lower())).strip(" .!")


def build_tokenizer(
    teacher: PreTrainedTokenizerFast, texts: list[str], always: list[str], size: int
) -> PreTrainedTokenizerFast:
    """A WordPiece tokenizer over the teacher's most used pieces, with all ASCII characters."""
    counts = Counter(i for ids in teacher(texts, add_special_tokens=False).input_ids for i in ids)
    frequent = [teacher.convert_ids_to_tokens(i) for i, _ in counts.most_common()]
    known = teacher.get_vocab()
    chars = [c for c in map(chr, range(33, 127)) if not c.isupper()]
    chars += ["##" + c for c in chars if c.isalnum()]
    needed = [t for text in always for t in teacher.tokenize(text)]
    wanted = dict.fromkeys(SPECIAL + [c for c in chars if c in known] + needed + frequent)
    vocab = {token: i for i, token in enumerate(list(wanted)[:size])}
    tok = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(t, vocab[t]) for t in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tok,
        model_max_length=MAX_LENGTH,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{t[1:-1].lower()}_token": t for t in SPECIAL},
    )


def neighbours(table: Tensor, tokens: list[str], k: int = 12) -> Tensor:
    """For each token the k nearest by cosine; whole words only go to whole words."""
    unit = nn.functional.normalize(table - table.mean(0), dim=1)
    word = torch.tensor([t.isalpha() and len(t) > 2 for t in tokens])
    near = (unit @ unit.T).masked_fill(~word, -1).fill_diagonal_(-1)
    near = near.topk(k, dim=1).indices
    return torch.where(word[:, None], near, torch.arange(len(tokens))[:, None])


def varied(ids: list[int], near: list[list[int]], rng: random.Random) -> list[int]:
    """A text with some words replaced by neighbours, at times only a stretch of it."""
    body, rate = ids[1:-1], rng.uniform(0.1, 0.45)
    if len(body) > 8 and rng.random() < 0.3:
        n = rng.randrange(5, len(body))
        start = rng.randrange(len(body) - n + 1)
        body = body[start : start + n]
    body = [rng.choice(near[i]) if rng.random() < rate else i for i in body]
    return [ids[0], *body, ids[-1]]


# --- Teacher ------------------------------------------------------------------------------------


@dataclass
class Item:
    """One training text: token ids, label (None: only the teacher's), then what is learnt."""

    ids: list[int]
    label: int | None
    rule: bool = False
    target: float = 0.5  # probability of "positive" to learn
    hidden: Tensor | None = None  # float16 [levels, n, d]; None: the teacher is wrong here


def batches(
    items: list[Item], size: int, rng: random.Random | None = None
) -> Iterator[tuple[list[Item], Tensor, Tensor]]:
    """Batches of similar length (padding is wasted time), shuffled when given an rng."""
    noise = rng.random if rng else lambda: 0.0
    order = sorted(items, key=lambda x: len(x.ids) + 3 * noise())
    groups = [order[i : i + size] for i in range(0, len(order), size)]
    if rng:
        rng.shuffle(groups)
    for group in groups:
        n = max(len(x.ids) for x in group)
        ids = torch.tensor([x.ids + [0] * (n - len(x.ids)) for x in group])
        yield group, ids, (ids != 0).long()


@torch.no_grad()
def predict(model: nn.Module, items: list[Item], ids_map: Tensor | None = None) -> dict[int, float]:
    """Probability of "positive" for each item, by the item's identity."""
    model.eval()
    out: dict[int, float] = {}
    for group, ids, mask in batches(items, 64):
        ids = ids if ids_map is None else ids_map[ids]
        p = model(input_ids=ids, attention_mask=mask).logits.softmax(-1)[:, 1]
        out.update(zip(map(id, group), p.tolist(), strict=True))
    return out


def accuracy(model: nn.Module, items: list[Item], ids_map: Tensor | None = None) -> float:
    p = predict(model, items, ids_map)
    return sum((p[id(x)] > 0.5) == x.label for x in items) / len(items)


@torch.no_grad()
def teach(
    teacher: nn.Module, items: list[Item], ids_map: Tensor, basis: Tensor, levels: list[int]
) -> None:
    """Fill in target and hidden states, the latter in the student's basis.

    The treebank's labels are mixed with the teacher's opinion; rules overrule the teacher.
    """
    for group, ids, mask in batches(items, 64):
        out = teacher(input_ids=ids_map[ids], attention_mask=mask, output_hidden_states=True)
        hidden = torch.stack([out.hidden_states[i] @ basis for i in levels], 1).half()
        for item, p, h in zip(group, out.logits.softmax(-1)[:, 1].tolist(), hidden, strict=True):
            agrees = item.label is None or (p > 0.5) == item.label
            if item.rule:
                item.target = 0.05 + 0.9 * float(item.label or 0)
            else:
                item.target = p if item.label is None else (p + item.label) / 2
            item.hidden = h[:, : len(item.ids)].clone() if agrees or not item.rule else None


# --- Student ------------------------------------------------------------------------------------


@torch.no_grad()
def principal_basis(
    teacher: nn.Module, items: list[Item], ids_map: Tensor, levels: list[int], d: int
) -> Tensor:
    """[D, d] orthonormal: the directions in which hidden states vary most.

    Rotated at random within their span: a LayerNorm treats coordinates alike, principal
    components are anything but alike.
    """
    total = 0.0
    for _, ids, mask in batches(items, 64):
        out = teacher(input_ids=ids_map[ids], attention_mask=mask, output_hidden_states=True)
        for i in [0, *levels]:
            h = out.hidden_states[i][mask.bool()]
            total = total + h.T @ h / h.square().sum()
    _, vectors = torch.linalg.eigh(total)
    rotation, _ = torch.linalg.qr(torch.randn(d, d))
    return vectors[:, -d:] @ rotation


@torch.no_grad()
def cut_out(
    student: BertForSequenceClassification,
    teacher: BertForSequenceClassification,
    ids_map: Tensor,
    basis: Tensor,
    layers: list[int],
) -> None:
    """Initialise the student with the teacher's strongest heads and neurons, in the basis."""

    def put(to: nn.Linear, weight: Tensor, bias: Tensor) -> None:
        to.weight.copy_(weight)
        to.bias.copy_(bias)

    def put_norm(to: nn.LayerNorm, old: nn.LayerNorm) -> None:
        to.weight.fill_(float(old.weight.square().mean().sqrt()))
        to.bias.copy_(old.bias @ basis)

    new, old = student.bert.embeddings, teacher.bert.embeddings
    new.word_embeddings.weight.copy_(old.word_embeddings.weight[ids_map] @ basis)
    new.position_embeddings.weight.copy_(old.position_embeddings.weight[:MAX_LENGTH] @ basis)
    new.token_type_embeddings.weight.copy_(old.token_type_embeddings.weight @ basis)
    put_norm(new.LayerNorm, old.LayerNorm)
    size = teacher.config.hidden_size // teacher.config.num_attention_heads
    for layer, source in zip(student.bert.encoder.layer, layers, strict=True):
        block = teacher.bert.encoder.layer[source]
        att, out = block.attention.self, block.attention.output
        value, dense = att.value.weight, out.dense.weight
        strength = torch.stack(
            [(b @ a).norm() for a, b in zip(value.split(size), dense.split(size, 1), strict=True)]
        )
        heads = strength.topk(student.config.num_attention_heads).indices.sort().values
        rows = (heads[:, None] * size + torch.arange(size)).flatten()
        for name in ("query", "key", "value"):
            lin = getattr(att, name)
            put(getattr(layer.attention.self, name), lin.weight[rows] @ basis, lin.bias[rows])
        put(layer.attention.output.dense, basis.T @ dense[:, rows], out.dense.bias @ basis)
        put_norm(layer.attention.output.LayerNorm, out.LayerNorm)
        up, down = block.intermediate.dense, block.output.dense
        strength = up.weight.norm(dim=1) * down.weight.norm(dim=0)
        rows = strength.topk(student.config.intermediate_size).indices
        put(layer.intermediate.dense, up.weight[rows] @ basis, up.bias[rows])
        put(layer.output.dense, basis.T @ down.weight[:, rows], down.bias @ basis)
        put_norm(layer.output.LayerNorm, block.output.LayerNorm)


def train(
    student: BertForSequenceClassification,
    items: list[Item],
    dev: list[Item],
    args: argparse.Namespace,
) -> None:
    """Soft labels plus hidden states, the latter fading out; ends on averaged weights."""
    rng = random.Random(args.seed)
    d, levels = student.config.hidden_size, student.config.num_hidden_layers
    maps = nn.Parameter(torch.eye(d).repeat(levels, 1, 1))  # student space to teacher space
    groups = [{"params": list(student.parameters()), "weight_decay": 0.01}, {"params": [maps]}]
    optimiser = torch.optim.AdamW(groups, lr=args.lr)
    steps = args.epochs * math.ceil(len(items) / args.batch)
    warm = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda s: min((s + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * s / steps) + 1e-3),
    )
    average = torch.optim.swa_utils.AveragedModel(
        student, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.998)
    )
    step, began = 0, time.time()
    for epoch in range(args.epochs):
        student.train()
        sums = [0.0, 0.0]
        for group, ids, mask in batches(items, args.batch, rng):
            out = student(input_ids=ids, attention_mask=mask, output_hidden_states=True)
            p = torch.tensor([x.target for x in group])
            loss = nn.functional.cross_entropy(out.logits, torch.stack([1 - p, p], 1))
            goal = torch.zeros(len(group), levels, ids.shape[1], d)
            seen = torch.zeros(ids.shape)
            for row, x in enumerate(group):
                if x.hidden is not None:
                    goal[row, :, : len(x.ids)] = x.hidden
                    seen[row, : len(x.ids)] = 1
            mine = torch.stack(out.hidden_states[1:], 1) @ maps
            gap = ((mine - goal).square().mean(-1) * seen[:, None]).sum((0, 2))
            gap = gap / ((goal.square().mean(-1) * seen[:, None]).sum((0, 2)) + 1e-6)
            fade = 1 - step / steps
            (loss + args.hidden_weight * fade * gap.sum()).backward()
            nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            optimiser.zero_grad()
            average.update_parameters(student)
            sums = [sums[0] + loss.item(), sums[1] + gap.mean().item()]
            step += 1
            if step % 200 == 0:
                print(f"  step {step}/{steps}  {time.time() - began:.0f} s", flush=True)
        n = steps // args.epochs
        print(
            f"epoch {epoch + 1}: loss {sums[0] / n:.4f}, hidden gap {sums[1] / n:.3f}, "
            f"dev {accuracy(student, dev):.4f}, averaged {accuracy(average, dev):.4f}",
            flush=True,
        )
    student.load_state_dict(average.module.state_dict())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("data", "teacher", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--vocab", type=int, default=6400)
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument("--inner", type=int, default=576)
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 3, 5, 6])
    parser.add_argument("--variants", type=int, default=2000)
    parser.add_argument("--clauses", type=int, default=14000)
    parser.add_argument("--contrasts", type=int, default=6000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=6e-4)
    parser.add_argument("--hidden-weight", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--limit", type=int, help="only so many texts of the treebank: to try it")
    parser.add_argument("--test", action="store_true", help="report the test set too; once")
    args = parser.parse_args()
    for seed in args.seeds:
        made = argparse.Namespace(**vars(args), seed=seed)
        if len(args.seeds) > 1:
            made.out = args.out / f"seed-{seed}"
        make(made)


def make(args: argparse.Namespace) -> None:
    """One model, from its text to its evaluation."""
    began = time.time()
    torch.manual_seed(args.seed)
    rng = random.Random(0)  # of the text, which is the same for all seeds

    teacher_tok = BertTokenizerFast.from_pretrained(args.teacher)
    teacher = BertForSequenceClassification.from_pretrained(args.teacher, dtype=torch.float32)
    teacher.eval()
    rows: dict[str, tuple[int, bool]] = {}
    for part in ("phrases_a", "phrases_b", "sentences"):
        for text, label in read(args.data / f"sst2_train_{part}.tsv")[: args.limit]:
            rows[text.lower()] = (label, False)
            rows[as_typed(text.lower())] = (label, False)
    rules = rule_labelled(rng, args.clauses, args.contrasts)
    rows.update({text: (label, True) for text, label in rules.items()})
    dev_rows = read(args.data / "sst2_dev.tsv")
    held_out = [text for text, _ in read(NEGATIONS) + dev_rows] + [SENTENCE]
    held_keys = {key(text) for text in held_out}
    rows = {text: row for text, row in rows.items() if key(text) not in held_keys}

    tok = build_tokenizer(
        teacher_tok, [t for t, (_, rule) in rows.items() if not rule], list(rules), args.vocab
    )
    tokens = tok.convert_ids_to_tokens(range(len(tok)))
    ids_map = torch.tensor(teacher_tok.convert_tokens_to_ids(tokens))

    def items_of(texts: list[str], labels: list[int], rule: bool = False) -> list[Item]:
        ids = tok(texts, truncation=True, max_length=MAX_LENGTH).input_ids
        return [Item(i, label, rule) for i, label in zip(ids, labels, strict=True)]

    items = [x for t, (label, rule) in rows.items() for x in items_of([t], [label], rule)]
    dev = items_of([t for t, _ in dev_rows], [y for _, y in dev_rows])
    embeddings = teacher.bert.embeddings.word_embeddings.weight.detach()[ids_map]
    near = neighbours(embeddings, tokens).tolist()
    long = [x for x in items if len(x.ids) > 9 and not x.rule]
    items += [Item(varied(x.ids, near, rng), None) for x in rng.choices(long, k=args.variants)]
    assert {tuple(i) for i in tok(held_out).input_ids}.isdisjoint(tuple(x.ids) for x in items)
    print(f"{len(items)} texts ({len(rules)} by rule), {len(tok)} tokens in the vocabulary")
    print(f"teacher reading the student's tokens: dev {accuracy(teacher, dev, ids_map):.4f}")

    basis = principal_basis(
        teacher, rng.sample(items, min(4000, len(items))), ids_map, args.layers, args.hidden
    )
    teach(teacher, items, ids_map, basis, args.layers)
    ruled = [x for x in items if x.rule]
    print(
        f"teacher done after {time.time() - began:.0f} s; it agrees with "
        f"{sum(x.hidden is not None for x in ruled) / len(ruled):.3f} of the rule labels",
        flush=True,
    )
    config = BertConfig(
        vocab_size=len(tok),
        hidden_size=args.hidden,
        num_hidden_layers=len(args.layers),
        num_attention_heads=args.hidden // 32,
        intermediate_size=args.inner,
        max_position_embeddings=MAX_LENGTH,
        id2label=dict(enumerate(LABELS)),
        label2id={label: i for i, label in enumerate(LABELS)},
    )
    student = BertForSequenceClassification(config)
    cut_out(student, teacher, ids_map, basis, [i - 1 for i in args.layers])
    train(student, items, dev, args)

    args.out.mkdir(parents=True, exist_ok=True)
    student.eval().half().save_pretrained(args.out)
    tok.backend_tokenizer.save(str(args.out / "tokenizer.json"), pretty=False)
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    settings |= {"model_max_length": MAX_LENGTH}
    settings |= {f"{t[1:-1].lower()}_token": t for t in SPECIAL}
    (args.out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    (args.out / "model.safetensors").chmod(0o644)  # safetensors writes it for its owner only

    # What is reported is the saved file, after rounding to fp16.
    model = BertForSequenceClassification.from_pretrained(args.out, dtype=torch.float32)
    negated = [x for x, (t, _) in zip(dev, dev_rows, strict=True) if NEGATED.search(t)]
    tests = read(NEGATIONS)
    negations = items_of([t for t, _ in tests], [y for _, y in tests])
    p = predict(model, negations)
    for x, (text, _) in zip(negations, tests, strict=True):
        print(f"  {LABELS[x.label or 0]:8} {p[id(x)]:.3f}  {text}")
    print(f"negations {accuracy(model, negations) * len(negations):.0f} of {len(negations)}")
    print(f"dev {accuracy(model, dev):.4f}")
    print(f"dev, the {len(negated)} with a negation {accuracy(model, negated):.4f}")
    print(f"the teacher on these {accuracy(teacher, negated, ids_map):.4f}")
    if args.test:
        test = read(args.data / "sst2_test.tsv")
        print(f"test {accuracy(model, items_of([t for t, _ in test], [y for _, y in test])):.4f}")
    size = sum(f.stat().st_size for f in args.out.iterdir())
    print(f"{size / 1e6:.2f} MB, {time.time() - began:.0f} s in all")


if __name__ == "__main__":
    main()
