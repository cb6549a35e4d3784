"""Train and serve exact large-margin classifiers: the client of a service, and the estimator that needs none.

``Client`` and ``AsyncClient`` talk to a service. ``RemoteClassifier`` is a scikit-learn classifier that trains and
predicts on a service. ``PolymarginClassifier`` is one that trains in this process; it needs the extra ``learn``.
``Vocabulary`` lets it index texts by the names of concepts; it needs the extra ``server``, which has the dictionaries.
Each is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.async_client import AsyncClient
    from app.client import Client
    from app.features.vocabulary import Vocabulary
    from app.remote.errors import ClientError
    from app.remote_classifier import RemoteClassifier
    from solvers.estimator import PolymarginClassifier

    __version__: str

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "PolymarginClassifier",
    "RemoteClassifier",
    "Vocabulary",
    "__version__",
]

_MODULES = {
    "AsyncClient": "app.async_client",
    "Client": "app.client",
    "ClientError": "app.remote.errors",
    "RemoteClassifier": "app.remote_classifier",
    "PolymarginClassifier": "solvers.estimator",
    "Vocabulary": "app.features.vocabulary",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("app.version").VERSION
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if not name.endswith(("Classifier", "Vocabulary")):
            raise
        extra = "server" if name == "Vocabulary" else "learn"
        text = f"{name} needs {error.name}: pip install 'polymargin[{extra}]'"
        raise ImportError(text, name=error.name) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
