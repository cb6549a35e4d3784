"""The inference protocols of other services, by their names in POLYMARGIN_PROTOCOLS."""

from collections.abc import Mapping
from types import MappingProxyType

from fastapi import APIRouter

from app.protocols import annif, kserve_v1, label_studio, mlflow, open_inference

PROTOCOLS: Mapping[str, APIRouter] = MappingProxyType(
    {
        "open_inference": open_inference.router,
        "kserve_v1": kserve_v1.router,
        "mlflow": mlflow.router,
        "annif": annif.router,
        "label_studio": label_studio.router,
    }
)


def routers(names: str) -> list[APIRouter]:
    """Return the routers of comma-separated protocol names; ``none`` gives no router.

    Raises
    ------
    ValueError
        A name is not a protocol.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip() and name.strip() != "none"]
    unknown = sorted(set(wanted) - PROTOCOLS.keys())
    if unknown:
        raise ValueError(f"POLYMARGIN_PROTOCOLS names {', '.join(unknown)}; known are {', '.join(PROTOCOLS)} and none")
    return [PROTOCOLS[name] for name in wanted]
