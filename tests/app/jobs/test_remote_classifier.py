"""The remote classifier trains and predicts in a service as scikit-learn's own do in a process."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from asking import TestClient
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_score

from app.client import Client
from app.remote.errors import ClientError, JobFailedError
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
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'") as raised:
        classifier.predict_proba(TEXTS[:1])
    said = str(raised.value.__cause__)
    assert said.startswith("m@1 has no probability of its labels, because solver 'weston_watkins'")
    assert "solver='auto'" in said
    assert not hasattr(classifier, "predict_proba")
    assert client.get("/api/v1/datasets").json()["items"] == []
    assert client.get("/api/v1/models/m").json()["latest"]["params"]["C"] == 1.0


def test_probabilities_are_those_of_the_service_and_sum_to_one(make: Callable[..., RemoteClassifier]) -> None:
    candidates = {"candidates": [{"solver": "softmax"}]}
    classifier = make(solver="auto", params=candidates).fit(TEXTS, LABELS)
    assert hasattr(classifier, "predict_proba")
    chances = classifier.predict_proba(TEXTS[:4])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-5)
    assert (classifier.classes_[chances.argmax(axis=1)] == LABELS[:4]).all()


@pytest.mark.parametrize(
    ("given", "has"),
    [
        ({"solver": "auto"}, True),
        ({"solver": "softmax"}, False),
        ({"solver": "softmax", "space": [{"solver": "auto"}]}, True),
        ({"solver": "auto", "space": [{"solver": "softmax"}]}, False),
    ],
)
def test_only_classifiers_with_probabilities_have_the_method(given: dict[str, Any], has: bool) -> None:
    assert hasattr(RemoteClassifier("m", **given), "predict_proba") == has


def test_scorers_of_scikit_learn_take_the_scores_of_two_classes(make: Callable[..., RemoteClassifier]) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    classifier = make().fit(X, y)
    lead = classifier.decision_function(X)
    assert lead.shape == (40,)
    assert (classifier.classes_[(lead > 0).astype(int)] == classifier.predict(X)).all()
    assert get_scorer("roc_auc")(classifier, X, y) > 0.95


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


def test_columns_of_a_data_frame_are_those_of_the_training_rows(
    make: Callable[..., RemoteClassifier], client: TestClient
) -> None:
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(24, 4))
    X[:, 2] = 0.0
    frame = pandas.DataFrame(X, columns=["b", "é", "a", " c"])
    labels = np.array(["low", "middle", "high"])[X[:, 0].argsort().argsort() // 8]
    classifier, plain = make().fit(frame, labels), make().fit(X, labels)
    assert classifier.feature_names_in_.tolist() == ["b", "é", "a", " c"]
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_allclose(classifier.decision_function(frame), plain.decision_function(X), atol=0.05)
    with pytest.raises(ValueError, match="same order"):
        classifier.predict(frame[["a", "b", " c", "é"]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        classifier.predict(frame.rename(columns={"a": "x"}))
    service = Client(classifier.url, classifier.api_key)
    for columns in (["b", "é", "a", " c"], ["a", "b", " c", "é"]):
        found = service.predict("m", frame[columns], version=classifier.version_.version)
        assert [each.label for each in found.predictions] == classifier.predict(frame).tolist()
    listed = service.predict("m", X.tolist(), version=classifier.version_.version)  # in the order of the frame
    assert [each.label for each in listed.predictions] == classifier.predict(frame).tolist()
    with pytest.raises(ClientError, match=r"The matrix has 3 columns, but m@1 reads 4"):
        service.predict("m", csr_matrix(X[:, :3]), version=classifier.version_.version)
    with pytest.raises(ClientError, match="m@2 reads 4 numbers by their order"):
        service.predict("m", frame)


@pytest.mark.parametrize("width", [2, 4])
def test_matrices_of_another_width_are_refused(make: Callable[..., RemoteClassifier], width: int) -> None:
    classifier = make().fit(np.eye(3)[np.arange(24) % 3], LABELS)
    for X in (np.zeros((2, width)), csr_matrix((2, width))):
        with pytest.raises(ValueError, match=f"X has {width} features, but RemoteClassifier is expecting 3"):
            classifier.predict(X)


@pytest.mark.parametrize(
    "three",
    [
        [0.0, 1.0, 2.0],
        [-1, 0, 10],
        ["1.0", "01", "1"],
        [" l,0 ", "[a]", "True"],
        ["<http://a/1>", "<http://a/2>", "<http://a/3>"],
        ["e\u0301", "true", "false"],
    ],
)
def test_predictions_are_elements_of_the_classes(make: Callable[..., RemoteClassifier], three: list[Any]) -> None:
    y = np.array(three)[np.arange(24) % 3]
    classifier = make().fit(TEXTS, y)
    found = classifier.predict(TEXTS)
    assert found.dtype == classifier.classes_.dtype == y.dtype
    assert found.tolist() == y.tolist()
    assert classifier.classes_[classifier.decision_function(TEXTS).argmax(axis=1)].tolist() == y.tolist()


def test_booleans_are_predicted_as_booleans(make: Callable[..., RemoteClassifier]) -> None:
    y = np.array(LABELS) == "fruit"
    classifier = make().fit(TEXTS, y)
    assert classifier.predict(TEXTS).dtype == bool
    assert classifier.score(TEXTS, y) == 1.0


def test_labels_that_cannot_be_labels_are_named() -> None:
    classifier = RemoteClassifier("m", url="http://127.0.0.1:1")
    with pytest.raises(ValueError, match="y has no label in 1 of 3 rows: 1"):
        classifier.fit(TEXTS[:3], ["a", None, "b"])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        classifier.fit(TEXTS[:3], [0.5, 1.0, 2.0])
    with pytest.raises(ValueError, match="' a' and 'a', which the service reads as one"):
        classifier.fit(TEXTS[:3], ["a", " a", "b"])


@pytest.mark.parametrize("as_set", [False, True])
@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("b\nc", "has control characters"),
        ("b\0", "has control characters"),
        (" ", "is empty"),
        ("b" * 1001, "at most"),
    ],
)
def test_labels_that_the_service_refuses_are_named_before_anything_is_sent(label: str, why: str, as_set: bool) -> None:
    with pytest.raises(ValueError, match="which the service refuses: the label ") as refused:
        RemoteClassifier("m", url="http://127.0.0.1:1").fit(TEXTS[:2], [["a"], [label]] if as_set else ["a", label])
    assert f"y has the label {label!r}" in str(refused.value)
    assert why in str(refused.value)


@pytest.mark.parametrize("texts", [True, False])
def test_rows_have_weights(make: Callable[..., RemoteClassifier], texts: bool) -> None:
    words = ["one", "one", "two", "three"] * 6
    X = (
        words
        if texts
        else csr_matrix(np.array([[word == each for each in ("one", "two", "three")] for word in words], float))
    )
    y = ["a", "b", "b", "c"] * 6
    heavy = make().fit(X, y, sample_weight=[5.0, 1.0, 1.0, 0.0] * 6)
    assert heavy.classes_.tolist() == ["a", "b"]
    assert heavy.predict(X)[:3].tolist() == ["a", "a", "b"]
    assert make().fit(X, y, sample_weight=[1.0, 5.0, 1.0, 1.0] * 6).predict(X)[:4].tolist() == ["b", "b", "b", "c"]
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\)"):
        make().fit(X, y, sample_weight=[1.0, 2.0])
