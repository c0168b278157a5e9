"""The second route: attention of models that do not go through transformers' interface.

A few families compute attention by hand: a softmax, perhaps dropout or a change of shape,
then a product with the values. While such a model runs, every torch function on this thread
is looked at, and that pattern is picked out. Nothing about the model changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from .tap import Sink, repeat_heads
from .thread import Mode

_PRODUCTS = {"matmul", "bmm", "__matmul__"}


class Watching(Mode):
    """Sends (module, weights [1, H, n, n], values [1, H, n, d]) of each attention to `sink`.

    `module` is unknown here; the recorder knows which layer runs.
    """

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self.sink = sink
        self._weights: list[Tensor] = []  # the last softmax and what it has become since

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if not isinstance(result, Tensor):
            return result
        if name == "softmax":
            self._weights = [result]
        elif args and self._is_weights(args[0]):
            if name in _PRODUCTS and len(args) > 1:
                self._attention(args[0], args[1])
            elif result.numel() == args[0].numel():  # dropout, masking, change of shape or type
                self._weights.append(result)
        return result

    def _is_weights(self, tensor: Any) -> bool:
        return any(tensor is known for known in self._weights)

    def _attention(self, weights: Tensor, values: Tensor) -> None:
        rows, columns = weights.shape[-2:]
        # The latest form with batch and heads apart: a new view would lie beside the path that
        # gradients take. (Nothing but shape changes after the softmax in evaluation.)
        apart = [known for known in self._weights if known.dim() == 4]
        by_head = apart[-1] if apart else weights.reshape(1, -1, rows, columns)
        self._weights = []
        states = values.reshape(1, -1, columns, values.shape[-1])
        self.sink(nn.Identity(), by_head, repeat_heads(states, by_head.shape[1]))
