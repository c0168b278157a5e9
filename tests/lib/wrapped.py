"""Models as people wrap them, each beside the plain model that computes the same."""

from __future__ import annotations

import copy
import functools
import tempfile
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from mixwidget import Explanation, explain
from mixwidget.errors import MixwidgetError
from tests.lib import tiny

Model = Any


@dataclass(frozen=True)
class Wrapped:
    """How a model is wrapped. `plain` is what it must equal, None where it is refused."""

    title: str
    wrap: Callable[[], tuple[Model, Model | None]]
    refused: str = ""  # what the refusal says
    tolerance: float = 1e-5


_ALL: dict[str, Wrapped] = {}


def _wrapping(title: str, **options: Any) -> Callable[[Any], Any]:
    def add(wrap: Any) -> Any:
        _ALL[wrap.__name__] = Wrapped(title, wrap, **options)
        return wrap

    return add


def all_wrapped() -> dict[str, Wrapped]:
    return dict(_ALL)


METHODS: dict[str, dict[str, Any]] = {
    "alti": {},
    "value_zeroing": {},
    "hta": {"samples": 4},
    "gae": {},
    "gradient": {},
    "deeplift": {},
    "lrp": {},
    "blank_out": {},
}
TEXT = "the film is not bad ."


def tried(model: Model, method: str) -> Explanation | str:
    """The explanation, or the words in which the method or the model is refused."""
    given = {"tokenizer": tiny.tokenizer(), "target": 1, **METHODS[method]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return explain(model, TEXT, method, **given)
        except MixwidgetError as refusal:
            return str(refusal)


def distance(one: Explanation, other: Explanation) -> float:
    """The largest difference of two results, relative to the largest number."""
    return float(np.abs(one.scores - other.scores).max() / np.abs(other.scores).max())


def table() -> list[str]:
    """Markdown: how each of them fares, all methods tried."""
    lines = ["| model | result |", "|---|---|"]
    for one in _ALL.values():
        model, plain = one.wrap()
        if plain is None:
            lines.append(f"| {one.title} | refused: {tried(model, 'alti')} |")
            continue
        worst = 0.0
        for method in METHODS:
            found, expected = tried(model, method), tried(plain, method)
            if not isinstance(found, str) and not isinstance(expected, str):
                worst = max(worst, distance(found, expected))
        assert worst <= one.tolerance, one.title
        lines.append(f"| {one.title} | equal, within {one.tolerance:.0e} |")
    return lines


def _bert(head: str = "SequenceClassification", **config: Any) -> Model:
    return tiny.model("bert", head, **config)


@_wrapping("LoRA (peft)", tolerance=1e-4)
def lora() -> tuple[Model, Model]:
    import peft

    config = peft.LoraConfig(target_modules=["query", "value", "dense"], r=2,
                             init_lora_weights=False, lora_dropout=0.5)  # fmt: skip
    adapted = peft.get_peft_model(_bert(), config).train()
    return adapted, copy.deepcopy(adapted).eval().merge_and_unload()


@_wrapping("IA3 (peft)", tolerance=1e-4)
def ia3() -> tuple[Model, Model]:
    import peft

    config = peft.IA3Config(
        target_modules=["key", "value", "output.dense"],
        feedforward_modules=["output.dense"],
        init_ia3_weights=False,
    )
    adapted = peft.get_peft_model(_bert(), config).train()
    return adapted, copy.deepcopy(adapted).eval().merge_and_unload()


@_wrapping("prefix tuning (peft)", refused="prefix")
def prefix_tuning() -> tuple[Model, None]:
    import peft

    config = peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    return peft.get_peft_model(tiny.model("gpt2", "CausalLM"), config), None


@_wrapping("prompt tuning (peft)", refused="prompt")
def prompt_tuning() -> tuple[Model, None]:
    import peft

    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    return peft.get_peft_model(tiny.model("gpt2", "CausalLM"), config), None


@_wrapping("accelerate hooks (`device_map` over several devices)")
def dispatched() -> tuple[Model, Model]:
    from accelerate import dispatch_model

    model = _bert()
    places = {name: "cpu" for name, _ in model.named_children()}
    return dispatch_model(model, places, main_device="cpu", force_hooks=True).train(), _bert()


@_wrapping("accelerate hooks on every module")
def hooked() -> tuple[Model, Model]:
    from accelerate.hooks import AlignDevicesHook, ModelHook, add_hook_to_module

    model = _bert()
    for module in model.modules():
        add_hook_to_module(module, AlignDevicesHook(execution_device="cpu"))
    add_hook_to_module(model.bert, ModelHook(), append=True)
    return model, _bert()


@_wrapping("cpu offload (accelerate)", refused="not in memory")
def cpu_offloaded() -> tuple[Model, None]:
    from accelerate import cpu_offload

    return cpu_offload(_bert(), execution_device=torch.device("cpu")), None


@_wrapping("disk offload (accelerate)", refused="not in memory")
def disk_offloaded() -> tuple[Model, None]:
    from accelerate import disk_offload

    folder = tempfile.mkdtemp()
    return disk_offload(_bert(), folder, execution_device=torch.device("cpu")), None


@_wrapping("meta device", refused="not in memory")
def meta() -> tuple[Model, None]:
    return _bert().to("meta"), None


@_wrapping("gradient checkpointing, in training")
def checkpointed() -> tuple[Model, Model]:
    model = _bert(attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.5)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    return model.train(), _bert()


@_wrapping("checkpointing by a wrapper (`checkpoint_wrapper`)")
def checkpoint_wrapped() -> tuple[Model, Model]:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model = _bert()
    layers = model.bert.encoder.layer
    for number, layer in enumerate(layers):
        layers[number] = checkpoint_wrapper(layer)
    return model.train(), _bert()


def _broken(*_: Any, **__: Any) -> Any:
    raise AssertionError("compiled code was run")


def _compile(target: Any) -> Any:
    """torch.compile, by a compiler that fails when it is used."""
    return torch.compile(target, backend=_broken)


@_wrapping("`torch.compile(model)`")
def compiled() -> tuple[Model, Model]:
    return _compile(_bert()), _bert()


@_wrapping("`model.compile()`")
def compiled_in_place() -> tuple[Model, Model]:
    model = _bert()
    model.compile(backend=_broken)
    return model, _bert()


@_wrapping("`model.forward = torch.compile(model.forward)`")
def compiled_forward() -> tuple[Model, Model]:
    model = _bert()
    model.forward = _compile(model.forward)
    return model, _bert()


@_wrapping("compiled layers")
def compiled_layers() -> tuple[Model, Model]:
    model = _bert()
    layers = model.bert.encoder.layer
    layers[0] = _compile(layers[0])
    layers[1].compile(backend=_broken)
    return model, _bert()


@_wrapping("a class whose `forward` is compiled")
def compiled_class() -> tuple[Model, Model]:
    model = _bert()
    kind = type(model.bert)
    mine = type("Mine", (kind,), {"forward": _compile(kind.forward)})
    model.bert.__class__ = mine
    return model, _bert()


def _doubled_pooler() -> Model:
    """What the patches below compute: twice the pooler's result."""
    model = _bert()
    model.classifier.weight.data *= 2
    return model


@_wrapping("`forward` patched by a closure")
def patched_by_closure() -> tuple[Model, Model]:
    model = _bert()
    pooler, before = model.bert.pooler, model.bert.pooler.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        assert not pooler.training
        return 2 * before(*args, **kwargs)

    pooler.forward = forward
    return model.train(), _doubled_pooler()


@_wrapping("`forward` patched by a method")
def patched_by_method() -> tuple[Model, Model]:
    model = _bert()

    def forward(self: Any, hidden: Any) -> Any:
        assert not self.training
        return 2 * type(self).forward(self, hidden)

    model.bert.pooler.forward = types.MethodType(forward, model.bert.pooler)
    return model.train(), _doubled_pooler()


@_wrapping("`forward` patched by a partial over an object")
def patched_by_partial() -> tuple[Model, Model]:
    model = _bert()

    class Holder:
        __slots__ = ("before", "held")

    holder = Holder()
    holder.held = {"modules": [model.bert.pooler]}
    holder.before = model.bert.pooler.forward

    def forward(holder: Any, hidden: Any) -> Any:
        assert not holder.held["modules"][0].training
        return 2 * holder.before(hidden)

    model.bert.pooler.forward = functools.partial(forward, holder)
    return model.train(), _doubled_pooler()


@_wrapping("`forward` patched in a notebook, over its globals")
def patched_by_globals() -> tuple[Model, Model]:
    model = _bert()
    cell = {"__name__": "__main__", "model": model}
    code = (
        "before = model.bert.pooler.forward\n"
        "def twice(hidden):\n"
        "    assert not model.training\n"
        "    return 2 * before(hidden)\n"
        "model.bert.pooler.forward = lambda hidden: twice(hidden)\n"
    )
    exec(code, cell)
    return model.train(), _doubled_pooler()


@_wrapping("the user's own hooks")
def user_hooks() -> tuple[Model, Model]:
    model = _bert()
    model.bert.pooler.register_forward_hook(lambda module, args, result: 2 * result)
    model.bert.register_forward_pre_hook(lambda module, args: None)
    return model, _doubled_pooler()


@_wrapping("a hook over a module that is not a part of the model")
def adapter_in_a_hook() -> tuple[Model, Model]:
    model = _bert()
    adapter = nn.Sequential(nn.Dropout(0.9), nn.Identity()).train()
    model.bert.pooler.register_forward_hook(lambda module, args, result: result + adapter(result))
    return model.train(), _doubled_pooler()


def _each_projection(model: Model, change: Callable[[nn.Module], Any]) -> Model:
    for layer in model.bert.encoder.layer:
        for module in (layer.attention.output, layer.intermediate, layer.output):
            change(module.dense)
    return model


def _spectral_plain(wrapped: Model, name: str) -> Model:
    plain = _bert()
    with torch.no_grad():
        for one, other in zip(wrapped.bert.encoder.layer, plain.bert.encoder.layer, strict=True):
            for path in ("attention.output.dense", "intermediate.dense", "output.dense"):
                one_part, other_part = one.get_submodule(path), other.get_submodule(path)
                one_part(torch.zeros(1, one_part.in_features))  # old hooks set the weight
                other_part.weight.copy_(getattr(one_part, name))
    return plain


@_wrapping("`DataParallel`")
def parallel() -> tuple[Model, Model]:
    return torch.nn.DataParallel(_bert()).train(), _bert()


@_wrapping("pruned weights (masks)")
def pruned() -> tuple[Model, Model]:
    from torch.nn.utils import prune

    model, plain = _bert(), _bert()
    for one in (model, plain):
        for module in one.modules():
            if isinstance(module, torch.nn.Linear):
                prune.l1_unstructured(module, "weight", 0.3)
                if one is plain:
                    prune.remove(module, "weight")
    return model.train(), plain


@_wrapping("weight norm (hook)", tolerance=1e-4)
def old_weight_norm() -> tuple[Model, Model]:
    return _each_projection(_bert(), torch.nn.utils.weight_norm), _bert()


@_wrapping("weight norm (parametrization)", tolerance=1e-4)
def weight_norm() -> tuple[Model, Model]:
    return _each_projection(_bert(), torch.nn.utils.parametrizations.weight_norm), _bert()


@_wrapping("spectral norm (hook)", tolerance=1e-4)
def old_spectral_norm() -> tuple[Model, Model]:
    model = _each_projection(_bert(), torch.nn.utils.spectral_norm).eval()
    return model, _spectral_plain(model, "weight")


@_wrapping("spectral norm (parametrization)", tolerance=1e-4)
def spectral_norm() -> tuple[Model, Model]:
    model = _each_projection(_bert(), torch.nn.utils.parametrizations.spectral_norm).eval()
    return model, _spectral_plain(model, "weight")


@_wrapping("shared layers (ALBERT)")
def shared_layers() -> tuple[Model, Model]:
    model = tiny.model("albert")
    return model.train(), tiny.model("albert")


@_wrapping("tied weights")
def tied() -> tuple[Model, Model]:
    model = tiny.model("gpt2", "CausalLM", tie_word_embeddings=True)
    plain = tiny.model("gpt2", "CausalLM", tie_word_embeddings=True)
    plain.lm_head.weight = nn.Parameter(plain.lm_head.weight.detach().clone())
    return model, plain


@_wrapping("parts that are ScriptModules")
def scripted() -> tuple[Model, Model]:
    model = _bert()
    model.bert.pooler.dense = torch.jit.script(model.bert.pooler.dense)
    model.dropout = torch.jit.script(nn.Sequential(nn.Dropout(0.9)))
    for layer in model.bert.encoder.layer:
        layer.output.dropout = torch.jit.script(nn.Dropout(0.9))
        layer.output.dense = torch.jit.script(layer.output.dense)
    return model.train(), _bert()


@_wrapping("half precision", tolerance=5e-2)
def half() -> tuple[Model, Model]:
    return _bert().half(), _bert().half().float()


@_wrapping("dynamic int8 quantisation", refused="quantised by modules")
def dynamic_int8() -> tuple[Model, None]:
    return torch.ao.quantization.quantize_dynamic(_bert(), {nn.Linear}), None


@_wrapping("weights frozen, or made in inference mode")
def inference_weights() -> tuple[Model, Model]:
    with torch.inference_mode():
        model = _bert()
    return model, _bert()


@_wrapping("plain tensors and parameters kept in lists")
def listed() -> tuple[Model, Model]:
    model = _bert()
    model.kept = [model.classifier.weight, [model.bert.pooler], {"a": (model.classifier,)}]
    before = model.classifier.forward

    def forward(hidden: Any) -> Any:
        weight, (pooler,), more = model.kept
        assert weight is model.classifier.weight
        assert pooler is model.bert.pooler
        assert more["a"][0] is model.classifier
        return before(hidden)

    model.classifier.forward = forward
    return model, _bert()
