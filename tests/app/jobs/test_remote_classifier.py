"""The remote classifier trains and predicts in a service as scikit-learn's own do in a process."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from asking import TestClient
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from app.remote.errors import JobFailedError
from app.remote_classifier import RemoteClassifier

TEXTS = ["red round apple", "green long leek", "blue deep sea"] * 8
LABELS = ["fruit", "herb", "water"] * 8


@pytest.fixture
def make(wired: None, secrets: dict[str, str]) -> Callable[..., RemoteClassifier]:
    """A classifier whose service is the application in this process."""

    def classifier(**given: Any) -> RemoteClassifier:
        url, key = "http://127.0.0.1", secrets["editor"]
        return RemoteClassifier("m", **{"solver": "weston_watkins", "url": url, "api_key": key, **given})

    return classifier


def test_texts_are_learnt_and_predicted(make: Callable[..., RemoteClassifier], client: TestClient) -> None:
    classifier = make().fit(TEXTS, LABELS)
    assert classifier.predict(["a deep blue sea", "an apple"]).tolist() == ["water", "fruit"]
    assert classifier.score(TEXTS, LABELS) == 1.0
    scores = classifier.decision_function(TEXTS[:4])
    assert (classifier.classes_[scores.argmax(axis=1)] == LABELS[:4]).all()
    with pytest.raises(AttributeError, match="has no probability"):
        classifier.predict_proba(TEXTS[:1])
    assert client.get("/api/v1/datasets").json()["items"] == []
    assert client.get("/api/v1/models/m").json()["latest"]["params"]["C"] == 1.0


def test_probabilities_are_those_of_the_service_and_sum_to_one(make: Callable[..., RemoteClassifier]) -> None:
    candidates = {"candidates": [{"solver": "softmax"}]}
    classifier = make(solver="auto", params=candidates).fit(TEXTS, LABELS)
    chances = classifier.predict_proba(TEXTS[:4])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-5)
    assert (classifier.classes_[chances.argmax(axis=1)] == LABELS[:4]).all()


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_numbers_that_are_not_finite_are_refused_before_anything_is_sent(value: float) -> None:
    X = np.eye(3)
    X[1, 2] = value
    for given in (X, csr_matrix(X), X.tolist()):
        with pytest.raises(ValueError, match=f"the first is {value} in row 1, column 2"):
            RemoteClassifier("m", url="http://127.0.0.1:1").fit(given, LABELS[:3])


def test_matrices_and_labels_keep_their_kind(make: Callable[..., RemoteClassifier], client: TestClient) -> None:
    X = csr_matrix(np.hstack([np.eye(3)[np.arange(24) % 3], np.zeros((24, 2))]))
    y = np.arange(24) % 3 + 7
    classifier = make(keep_dataset=True).fit(X, y)
    assert classifier.n_features_in_ == 5
    assert classifier.predict(X).tolist() == y.tolist()
    assert classifier.predict(np.array([[0.0, 2.0, 0.0, 1.0, 1.0]])).tolist() == [8]
    assert len(client.get("/api/v1/datasets").json()["items"]) == 1


def test_a_space_is_tried_and_the_best_of_it_taken(make: Callable[..., RemoteClassifier]) -> None:
    space = [{"solver": "weston_watkins", "grid": {"C": [1e-6, 1.0]}}]
    classifier = make(space=space, options={"folds": 2, "measure": "log_loss"}).fit(TEXTS, LABELS)
    assert classifier.score(TEXTS, LABELS) == 1.0
    assert classifier.job_.result is not None
    assert classifier.job_.result.trial == 0  # both are right everywhere, and the first is taken
    assert classifier.version_.params["C"] == 1e-6


def test_tools_of_scikit_learn_work_with_it(make: Callable[..., RemoteClassifier]) -> None:
    classifier = clone(make(params={"C": 2.0}, options={"seed": 3}))
    assert classifier.get_params()["params"] == {"C": 2.0}
    assert cross_val_score(classifier, np.array(TEXTS, object), LABELS, cv=2).tolist() == [1.0, 1.0]


def test_faults_are_told(make: Callable[..., RemoteClassifier]) -> None:
    with pytest.raises(ValueError, match="24 rows, but y has 23"):
        make().fit(TEXTS, LABELS[1:])
    with pytest.raises(JobFailedError):
        make(options={"text": {"min_df": 1000}}).fit(TEXTS, LABELS)


@pytest.mark.parametrize("form", ["indicators", "sparse", "lists"])
def test_sets_come_back_in_the_form_they_were_given_in(make: Callable[..., RemoteClassifier], form: str) -> None:
    texts = ["red apple", "blue sea", "red apple blue sea", "none at all"] * 8
    y: Any = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 8)
    if form == "sparse":
        y = csr_matrix(y)
    elif form == "lists":
        y = [["a"], ["b"], ["a", "b"], []] * 8
    classifier = make(solver="node_svm", params={"C": 10.0}).fit(texts, y)
    found = classifier.predict(texts[:4])
    assert type(found) is type(y)
    if form == "lists":
        assert [sorted(row) for row in found] == y[:4]
    else:
        given, said = (csr_matrix(each).toarray() for each in (y[:4], found))
        np.testing.assert_array_equal(said, given)


def test_a_data_frame_of_one_column_of_texts_is_texts(make: Callable[..., RemoteClassifier]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "label": LABELS}, index=range(5, 29))
    classifier = make().fit(frame[["text"]], frame["label"])
    assert classifier.predict(frame[["text"]].head(2)).tolist() == LABELS[:2]
    assert classifier.predict(frame["text"].head(2)).tolist() == LABELS[:2]
    with pytest.raises(ValueError, match="one column of texts"):
        make().fit(frame[["text", "label"]], frame["label"])


def test_a_data_frame_of_numbers_is_a_matrix(make: Callable[..., RemoteClassifier]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.eye(3)[np.arange(24) % 3], columns=["r", "g", "b"], index=range(5, 29))
    classifier = make().fit(frame, LABELS)
    assert classifier.predict(frame.head(3)).tolist() == LABELS[:3]
    assert classifier.score(frame, pandas.Series(LABELS)) == 1.0
    frame.loc[6, "b"] = None
    with pytest.raises(ValueError, match="the first is nan in row 1, column 2"):
        make().fit(frame, LABELS)
