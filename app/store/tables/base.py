"""The base of all tables, and which SQL type stands for which Python type."""

from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Double
from sqlalchemy.orm import DeclarativeBase


class Table(DeclarativeBase):
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        dict[str, Any]: JSON,
        list[Any]: JSON,
        float: Double,
        int: BigInteger,
    }
