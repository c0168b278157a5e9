"""What a `MixView` of several models has besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import traitlets

if TYPE_CHECKING:
    from ..explanation import Explanation
    from ..session import Session, Several


class SeveralModels(traitlets.HasTraits):
    """Several models of one text: their names, how each stands, and what each gives."""

    models: Any = traitlets.List(read_only=True).tag(sync=True)
    names: Any = traitlets.Any((), help="What several models are called.")
    _session: Session | Several | None

    @property
    def explanations_by_model(self) -> dict[str, dict[str, Explanation]]:
        """The finished results of all models, by name and method id."""
        return {} if self._session is None else self._session.by_model()

    def _known_models(self) -> list[str]:
        return list(self.names)
