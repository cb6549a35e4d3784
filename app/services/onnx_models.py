"""ONNX graphs of linear machines on given features: a dense matrix in, labels and scores out."""

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from app.errors import InvalidInput, Item, Unavailable
from app.features.base import Features
from app.schemas.models import ModelVersion
from solvers.core.model import Model

# protobuf takes two gigabytes, the names of the classes included
MOST_BYTES = 1_900_000_000
PACKAGE = "onnx"
OPSET, IR_VERSION = 17, 8


def onnx_model(version: ModelVersion, model: Model, features: Features) -> bytes:
    """The graph of a version: ``features`` float32 (n, n_given) to ``label`` string (n,), ``scores`` (n, n_classes).

    Raises
    ------
    InvalidInput
        The version reads texts, or is no linear machine that names one label of a flat list.
    Unavailable
        The package onnx is not installed here.
    """
    weights = model.linear_weights()
    fault = None
    if features.kind == "text":
        fault = "it reads texts, which ONNX has no words for; the archive has a script that does"
    elif model.names_sets or model.tree is not None:
        fault = "it goes along a label tree; the archive has a script that does"
    elif weights is None:
        fault = "it is no linear machine, or several of them"
    elif 4 * weights.W.shape[0] * weights.W.shape[1] > MOST_BYTES:
        fault = f"its weights take more than {MOST_BYTES} bytes"
    if fault is not None or weights is None:
        raise InvalidInput("The version cannot be given as ONNX.", [Item(str(fault), "/format")])
    W = weights.dense().astype(np.float32)
    intercept = np.zeros(W.shape[1]) if weights.intercept is None else np.asarray(weights.intercept)
    pooled = model.kind == "pool"
    if pooled:  # of one machine: its scores times a coefficient, then the logarithm of the softmax
        factor = np.float32(model.arrays()["coefficients"][0])
        W, intercept = W * factor, intercept * factor
    columns = np.asarray(features.arrays().get("used", np.arange(features.n_given)))[weights.features]
    return _graph(_onnx(), version, columns, W, intercept.astype(np.float32), model.classes, features.n_given, pooled)


def _graph(
    onnx: ModuleType,
    version: ModelVersion,
    columns: Any,
    W: Any,
    intercept: Any,
    classes: Sequence[str],
    n_given: int,
    pooled: bool,
) -> bytes:
    helper, numpy_helper, kinds = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    constants = [
        numpy_helper.from_array(np.asarray(columns, np.int64), "columns"),
        numpy_helper.from_array(np.ascontiguousarray(W), "W"),
        numpy_helper.from_array(np.ascontiguousarray(intercept), "intercept"),
        helper.make_tensor("classes", kinds.STRING, [len(classes)], [name.encode() for name in classes]),
    ]
    nodes = [
        helper.make_node("Gather", ["features", "columns"], ["used"], axis=1),
        helper.make_node("Gemm", ["used", "W", "intercept"], ["sums" if pooled else "scores"]),
        *([helper.make_node("LogSoftmax", ["sums"], ["scores"], axis=1)] if pooled else []),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        helper.make_node("Gather", ["classes", "best"], ["label"], axis=0),
    ]
    graph = helper.make_graph(
        nodes,
        version.model,
        [helper.make_tensor_value_info("features", kinds.FLOAT, ["n", n_given])],
        [
            helper.make_tensor_value_info("label", kinds.STRING, ["n"]),
            helper.make_tensor_value_info("scores", kinds.FLOAT, ["n", len(classes)]),
        ],
        constants,
    )
    made = helper.make_model(
        graph,
        producer_name="polymargin",
        producer_version=version.code_version,
        model_version=version.version,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(made, {"version_sha256": version.sha256, "dataset_sha256": version.dataset_sha256})
    onnx.checker.check_model(made)
    content: bytes = made.SerializeToString()
    return content


def _onnx() -> ModuleType:
    try:
        return importlib.import_module(PACKAGE)
    except ImportError:
        raise Unavailable("The service lacks the package onnx: pip install 'polymargin[onnx]'.") from None
