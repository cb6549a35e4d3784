"""Which protocols the service speaks, by the names of POLYMARGIN_PROTOCOLS."""

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
    """The routers of a list of names with commas between; ``none`` of no protocol.

    Raises
    ------
    ValueError
        A name is none of a protocol.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip() and name.strip() != "none"]
    unknown = sorted(set(wanted) - PROTOCOLS.keys())
    if unknown:
        raise ValueError(f"POLYMARGIN_PROTOCOLS names {', '.join(unknown)}; known are {', '.join(PROTOCOLS)} and none")
    return [PROTOCOLS[name] for name in wanted]
