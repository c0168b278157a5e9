"""Torch functions by name, as backward rules see them."""

from __future__ import annotations

from typing import Any

ACTIVATIONS = {
    *["gelu", "silu", "relu", "relu6", "tanh", "sigmoid", "softplus", "mish", "leaky_relu", "elu"],
    *["celu", "selu", "prelu", "hardswish", "hardtanh", "hardsigmoid", "logsigmoid", "log_sigmoid"],
    *[
        "softsign",
        "tanhshrink",
        "softshrink",
        "hardshrink",
        "threshold",
        "exp",
        "exp2",
        "expm1",
        "log",
    ],
    *["log1p", "erf", "sin", "cos", "abs", "square", "pow", "float_power", "clamp", "clip"],
    *["clamp_min", "clamp_max", "nan_to_num"],
}
# Activations that are not 0 at 0: what they put out there is a constant.
RAISED = {
    "sigmoid",
    "softplus",
    "exp",
    "exp2",
    "cos",
    "hardsigmoid",
    "logsigmoid",
    "clamp",
    "clip",
} | {"log_sigmoid"}
PRODUCTS = {"matmul", "bmm", "mm", "mv", "dot", "mul", "multiply", "einsum", "outer", "bilinear"}
# What a norm, or weights that are made to sum to 1, divide by.
SCALES = {"rsqrt", "sqrt", "var", "std", "norm", "vector_norm", "reciprocal", "logsumexp"}
NORMS = {"layer_norm", "rms_norm", "group_norm", "normalize"}
# Linear in what depends on the text, with constants that may be added.
SUMS = {
    *["add", "sub", "rsub", "subtract", "cat", "concat", "concatenate", "stack", "hstack"],
    *["where", "masked_fill", "lerp", "addmv"],
}
JOINS = {"cat", "concat", "concatenate", "stack", "hstack"}
# Linear maps with a constant under this name and place.
BIASED = {
    "linear": ("bias", 2),
    "conv1d": ("bias", 2),
    "conv2d": ("bias", 2),
    "addmm": ("input", 0),
    "addbmm": ("input", 0),
}
LINEAR = {
    *["view", "view_as", "reshape", "reshape_as", "transpose", "permute", "contiguous", "clone"],
    *["to", "float", "double", "half", "bfloat16", "type", "type_as", "expand", "expand_as"],
    *["unsqueeze", "squeeze", "flatten", "unflatten", "split", "split_with_sizes", "chunk"],
    *["tensor_split", "unbind", "narrow", "select", "getitem", "index_select", "gather", "take"],
    *["take_along_dim", "masked_select", "repeat", "repeat_interleave", "tile", "roll", "flip"],
    *["movedim", "moveaxis", "swapaxes", "swapdims", "t", "adjoint", "mean", "sum", "cumsum"],
    *["neg", "negative", "positive", "dropout", "dropout1d", "feature_dropout", "pad", "unfold"],
    *["tril", "triu", "diagonal", "diag", "diag_embed", "scatter", "scatter_add", "index_add"],
    *["index_copy", "index_put", "masked_scatter", "copy", "setitem", "max", "min", "amax"],
    *["amin", "topk", "sort", "as_strided", "broadcast_to", "broadcast_tensors", "div", "truediv"],
    *["divide", "true_divide", "avg_pool1d", "slice_scatter", "select_scatter", "index", "diff"],
    *["atleast_2d", "fill_diagonal", "zero", "fill", "get", "iter", "detach", "alias"],
    *["register_hook", "requires_grad", "retain_grad", "set", "ravel", "unsafe_chunk", "minimum"],
    *["maximum", "view_as_complex", "view_as_real"],
}
# Of what they read they choose some numbers, all at their places.
CHOICES = {"topk", "sort", "max", "min", "amax", "amin", "maximum", "minimum"}
# Linear, and what they write into may be a constant.
WRITTEN_INTO = {"index_add", "index_copy", "index_put", "scatter", "scatter_add", "masked_scatter",
                "setitem"}  # fmt: skip
# Of a tensor they take the shape alone.
MADE_ANEW = {
    *["zeros_like", "ones_like", "empty_like", "full_like", "new_zeros", "new_ones", "new_empty"],
    *["new_full", "new_tensor"],
}
DIVISIONS = {"div", "truediv", "divide", "true_divide", "rtruediv", "rdiv"}
_DUNDERS = {"add", "sub", "mul", "matmul", "truediv", "div", "pow"}


def named(func: Any) -> tuple[str, bool, bool]:
    """(what a torch function does, whether in place, whether its operands are swapped)."""
    name = getattr(func, "__name__", "")
    if name.startswith("__"):
        plain = name.strip("_")
        if plain[:1] == "i" and plain[1:] in _DUNDERS:
            return plain[1:], True, False
        if plain[:1] == "r" and plain[1:] in _DUNDERS:
            return plain[1:], False, plain[1:] in ("sub", "truediv", "div", "pow", "matmul")
        return plain, plain == "setitem", False
    if name.endswith("_") and not name.startswith("_"):
        return name[:-1], True, False
    return name.removeprefix("linalg_"), False, False
