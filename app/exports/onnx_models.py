"""ONNX graphs of linear machines on given features: a dense matrix in, labels and scores out."""

from types import ModuleType

import numpy as np

from app.exports.flat_machines import FlatMachine, flat_machine, optional_module
from app.features.base import Features
from app.models.schemas import ModelVersion
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
        The version is none that :func:`flat_machine` takes.
    Unavailable
        The package onnx is not installed here.
    """
    # first: if no graph can hold the version, there is no use in installing the package
    machine = flat_machine(model, features, "ONNX", MOST_BYTES)
    return _graph(optional_module(PACKAGE, "onnx"), version, machine)


def _graph(onnx: ModuleType, version: ModelVersion, machine: FlatMachine) -> bytes:
    helper, numpy_helper, kinds = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    constants = [
        numpy_helper.from_array(np.asarray(machine.columns, np.int64), "columns"),
        numpy_helper.from_array(np.ascontiguousarray(machine.W), "W"),
        numpy_helper.from_array(np.ascontiguousarray(machine.intercept), "intercept"),
        helper.make_tensor(
            "classes", kinds.STRING, [len(machine.classes)], [name.encode() for name in machine.classes]
        ),
    ]
    scaled = []
    if machine.scaling is not None:
        constants += [
            numpy_helper.from_array(np.asarray(values, np.float32), name)
            for name, values in machine.scaling._asdict().items()
        ]
        scaled = [
            helper.make_node("Sub", ["given", "centre"], ["centred"]),
            helper.make_node("Div", ["centred", "scale"], ["used"]),
        ]
    nodes = [
        helper.make_node("Gather", ["features", "columns"], ["given" if scaled else "used"], axis=1),
        *scaled,
        helper.make_node("Gemm", ["used", "W", "intercept"], ["sums" if machine.pooled else "scores"]),
        *([helper.make_node("LogSoftmax", ["sums"], ["scores"], axis=1)] if machine.pooled else []),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        helper.make_node("Gather", ["classes", "best"], ["label"], axis=0),
    ]
    graph = helper.make_graph(
        nodes,
        version.model,
        [helper.make_tensor_value_info("features", kinds.FLOAT, ["n", machine.n_given])],
        [
            helper.make_tensor_value_info("label", kinds.STRING, ["n"]),
            helper.make_tensor_value_info("scores", kinds.FLOAT, ["n", len(machine.classes)]),
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
