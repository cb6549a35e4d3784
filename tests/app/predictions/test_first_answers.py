"""What a service has compiled before its first request, which then waits for no compiler."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.predictions.first_answers import ask_for_weights
from solvers.core.linear_model import LinearModel
from solvers.core.stored_models import load_model

# a process of its own: others have called the loops before
_ASKED = """
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numba.core.dispatcher import Dispatcher

from app.features.columns import SparseFeatures
from app.features.text import TextFeatures
from app.datasets.recipe_schemas import TextRecipe
from app.predictions.first_answers import load_loops
from app.predictions.model_cache import LoadedModel
from app.predictions.service import predict
from app.operation.warm import answer
from solvers.core.linear_model import LinearModel
from solvers.core.stored_models import load_model

folder, dtype = Path(sys.argv[1]), np.dtype(sys.argv[2])


def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith(("app.", "solvers."))]
    loops = [loop for module in modules for loop in vars(module).values() if isinstance(loop, Dispatcher)]
    return {(loop.__module__, loop.__name__, signature) for loop in loops for signature in loop.signatures}


load_loops()
texts, _ = TextFeatures.fit(["one two", "two three"], TextRecipe())
model = LinearModel(["a", "b", "c"], 3, np.arange(3), np.eye(3, dtype=dtype), np.zeros(3, dtype))
if dtype != np.float32:
    answer(model, folder / "warm")
assert compiled(), "there are no loops to be seen"
before = compiled()
model.save(folder / "model")
stored, _ = load_model(folder / "model", mmap=True)
version = SimpleNamespace(model="m", version=1, sha256="0", gap=0.0)
text, sparse = {"text": "two three four"}, {"indices": [0, 2], "values": [1.0, 2.0]}
for features, instance in ((texts, text), (SparseFeatures(3), sparse)):
    arrays = features.arrays()
    for array in arrays.values():
        array.flags.writeable = False
    loaded = LoadedModel(version, stored, type(features).from_arrays(features.params_json(), arrays), 1)
    for n in (1, 2):
        assert len(predict(loaded, {"instances": n * [instance], "top_k": 2}, 2)["predictions"]) == n
print(sorted(compiled() - before))
"""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_request_compiles_nothing_that_a_start_or_the_warming_has_not(tmp_path: Path, dtype: str) -> None:
    done = subprocess.run([sys.executable, "-c", _ASKED, str(tmp_path), dtype], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    W = np.ones((50, 3), np.float32)
    LinearModel(("a", "b", "c"), 100, np.arange(0, 100, 2), W).save(tmp_path / "model")
    return tmp_path


def test_the_weights_that_instances_need_are_asked_for_by_their_place_in_the_file(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda file, begin, size, advice: asked.append((begin, size)))
    rows = [(np.array(indices, np.int32), np.ones(len(indices))) for indices in ([2, 3, 98], [2, 6])]
    model, _ = load_model(stored / "model", mmap=True)
    ask_for_weights(model, rows)
    beginning = (stored / "model" / "W.npy").stat().st_size - 50 * 12
    assert asked == [(beginning + 12 * row, 12) for row in (1, 3, 49)]
    asked.clear()
    ask_for_weights(load_model(stored / "model", mmap=False)[0], rows)
    assert asked == []
