"""Jobs: refused before they are queued, where that is possible."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.datasets import service as datasets
from app.datasets.import_options import with_language
from app.datasets.recipe_schemas import TextRecipe, default_recipe
from app.datasets.schemas import NewDataset
from app.datasets.statistics_schemas import DatasetStatistics, Languages, LanguageShare
from app.errors import Conflict, InvalidInput, NotFound
from app.hierarchies import service as hierarchies
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.request_schemas import Candidate, TuneRequest
from app.jobs.schemas import TrainRequest
from app.store import tables
from app.store.files import files

CSV = "text,label,split\none two,a,train\none six,b,train\nsix two,b,train\n"


def _request(**changes: Any) -> TrainRequest:
    return TrainRequest(**{"dataset": "digits", "model": "m", "solver": "weston_watkins", **changes})


def _refused(session: Session, **changes: Any) -> InvalidInput:
    error = _refused_again(session, **changes)
    assert session.scalars(select(tables.Job).where(tables.Job.kind == "train")).all() == []
    return error


def _refused_again(session: Session, **changes: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        jobs.submit(session, _request(**changes))
    return refused.value


def test_an_unknown_solver_is_refused_with_the_nearest(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    (item,) = _refused(session, solver="weston_watkin").errors
    assert item.pointer == "/solver"
    assert "weston_watkins" in item.detail


def test_wrong_parameters_are_refused_with_their_places(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    errors = _refused(session, params={"C": -1, "toll": 1}).errors
    assert {item.pointer for item in errors} == {"/params/C", "/params/toll"}
    assert any("'tol'" in item.detail for item in errors)


def test_weights_of_labels_that_the_dataset_does_not_have_are_refused_by_name(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset()
    (item,) = _refused(session, params={"class_weight": {"class1": 2.0, "rose": 3.0}}).errors
    assert item.pointer == "/params/class_weight"
    assert "1 label that no training row has: 'rose'" in item.detail
    assert jobs.submit(session, _request(params={"class_weight": {"class1": 2.0}})).state == "queued"


def test_the_recipe_that_is_left_out_stands_in_the_job(session: Session, dataset: Callable[..., str]) -> None:
    dataset(CSV, format="csv")
    words, of_auto = TextRecipe(), TextRecipe(ngram_max=2, char_ngrams=(3, 3), max_features=200_000, fields="auto")
    own = TextRecipe(prefix=4)
    for changes, recipe in (
        ({}, words),
        ({"solver": "auto"}, of_auto),
        ({"solver": "auto", "text": own}, own),
        ({"text": own}, own),
    ):
        row = session.get_one(tables.Job, jobs.submit(session, _request(**changes)).id)
        assert row.request["text"] == recipe.model_dump(mode="json")


def test_the_language_of_stop_words_that_is_found_out_stands_in_the_job(
    session: Session, dataset: Callable[..., str]
) -> None:
    said = ["Questi sono gli alberi che si trovano nella foresta", "Dit zijn de bomen die in het bos staan"]
    dataset("text,label\n" + "".join(f"{said[k % 3 == 0]} {k},{'ab'[k % 2]}\n" for k in range(60)), format="csv")
    recipe = TextRecipe(stop_words="auto")
    asked = (
        _request(text=recipe),
        TuneRequest(
            dataset="digits", model="m", space=[Candidate(solver="weston_watkins")], texts=[recipe, TextRecipe()]
        ),
    )
    train, tune = (session.get_one(tables.Job, jobs.submit(session, each).id).request for each in asked)
    assert train["text"]["stop_words"] == "it"
    assert [each["stop_words"] for each in tune["texts"]] == ["it", []]


@pytest.mark.parametrize(
    ("languages", "said"),
    [(None, "too short to detect their language"), ("sr", "most texts are in the language sr, which has no")],
)
def test_a_language_without_a_list_is_refused(languages: str | None, said: str) -> None:
    found = languages and Languages(n_rows=30, shares=[LanguageShare(language=languages, share=1.0)])
    statistics = DatasetStatistics.model_construct(languages=found)
    recipe = TextRecipe(stop_words="auto")
    with pytest.raises(InvalidInput) as caught:
        with_language(recipe, statistics, "/texts/1")
    (item,) = caught.value.errors
    assert (item.pointer, said in item.detail) == ("/texts/1/stop_words", True)


@pytest.mark.parametrize(
    ("recipe", "field", "said"),
    [
        (TextRecipe(stem="german"), "stem", "97% of the texts are in the language hi"),
        (TextRecipe(stop_words="de"), "stop_words", "language=de"),
        (TextRecipe(lemmas=("de", "en")), "lemmas", "lemmas is for de, en"),
        (TextRecipe(stem="german", language="hi"), "stem", "stem is for de, but language is hi"),
        (TextRecipe(stop_words="auto", stem="german"), "stem", "97% of the texts are in the language hi"),
    ],
)
def test_stems_and_stop_words_of_another_language_than_the_texts_are_refused(
    recipe: TextRecipe, field: str, said: str
) -> None:
    shares = [LanguageShare(language="hi", share=0.97), LanguageShare(language="en", share=0.03)]
    statistics = DatasetStatistics.model_construct(languages=Languages(n_rows=99, shares=shares))
    with pytest.raises(InvalidInput) as caught:
        with_language(recipe, statistics)
    (item,) = caught.value.errors
    assert (item.pointer, said in item.detail) == (f"/text/{field}", True)


def test_a_language_that_is_named_is_believed_and_auto_is_that_of_most_texts() -> None:
    shares = [LanguageShare(language="tr", share=0.9), LanguageShare(language="no", share=0.1)]
    statistics = DatasetStatistics.model_construct(languages=Languages(n_rows=99, shares=shares))
    assert with_language(TextRecipe(language="auto", stop_words="auto"), statistics).model_dump(
        include={"language", "stop_words"}
    ) == {"language": "tr", "stop_words": "tr"}
    for recipe in (TextRecipe(stem="german", language="de-AT"), TextRecipe(stem="swedish")):
        assert with_language(recipe, statistics) == recipe


def test_the_nodes_of_a_hierarchy_count_as_labels_of_the_recipe(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(CSV, format="csv")
    hierarchy([("root", "a"), ("root", "b"), *(("a", f"a{i}") for i in range(1998))])
    row = session.get_one(tables.Job, jobs.submit(session, _request(solver="auto", hierarchy="tree")).id)
    assert row.request["text"]["max_features"] == 100_000


@pytest.mark.parametrize(("n_labels", "most"), [(2, 200_000), (1000, 200_000), (5000, 40_000), (10**6, 20_000)])
def test_the_more_labels_the_fewer_terms(n_labels: int, most: int) -> None:
    assert default_recipe("auto", n_labels).max_features == most


def test_names_are_found_by_lemmas_where_there_is_a_dictionary() -> None:
    for solver in ("auto", "subjects"):
        assert default_recipe(solver, 10, ("fi",), named=True).lemmas == ("fi",)
        assert default_recipe(solver, 10, ("xh",), named=True).lemmas == ()
        assert default_recipe(solver, 10, ("fi",)).lemmas == ()
        assert default_recipe(solver, 10, ("en", "de", "xh"), named=True).lemmas == ("en", "de")
        assert default_recipe(solver, 10, ("xh", "en"), named=True).lemmas == ()


def test_a_job_whose_dual_variables_exceed_the_memory_allowed_is_refused_with_an_estimate(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset("".join(f"c{i} 1:{i}\n" for i in range(1, 1501)))
    (item,) = _refused(session, solver="one_vs_rest", params={"memory_mb": 8}).errors
    assert item.pointer == "/params/memory_mb"
    assert "1,500 examples and 1,500 classes needs at least 9 MB; memory_mb allows 8 MB" in item.detail
    assert jobs.submit(session, _request(solver="one_vs_rest", params={"memory_mb": 16})).state == "queued"
    assert jobs.submit(session, _request(solver="weston_watkins", params={"memory_mb": 8})).state == "queued"


def test_a_dataset_of_one_class_is_refused(session: Session, dataset: Callable[..., str]) -> None:
    dataset("a 1:1\na 1:2\n")
    (item,) = _refused(session).errors
    assert (item.pointer, "1 label;" in item.detail) == ("/dataset", True)


def test_labels_of_test_rows_alone_are_counted_unless_they_shall_be_refused(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset(CSV + "one,c,test\nsix,d,test\ntwo,a,test\n", format="csv")
    (item,) = _refused(session, unseen_labels="refuse").errors
    assert item.pointer == "/unseen_labels"
    assert "2 such labels, such as 'c', 'd'" in item.detail
    assert jobs.submit(session, _request()).state == "queued"


def test_a_method_over_a_tree_needs_a_hierarchy(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    (item,) = _refused(session, solver="orthogonal_transfer").errors
    assert item.pointer == "/hierarchy"
    with pytest.raises(NotFound, match="no hierarchy is named 'tree'"):
        jobs.submit(session, _request(solver="orthogonal_transfer", hierarchy="tree"))


def test_parameters_that_do_not_fit_the_tree_are_refused_when_asked_for(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset()
    labels = [("n59", "class0"), ("n59", "class1"), ("n59", "class2")]
    hierarchy([("root", "n0"), *((f"n{at}", f"n{at + 1}") for at in range(59)), *labels])
    deep = {"solver": "orthogonal_transfer", "hierarchy": "tree"}
    (item,) = _refused(session, **deep, params={"alpha": 5.0}).errors
    assert item.pointer == "/params/repair"
    assert "set repair to raise or scale" in item.detail
    (item,) = _refused(session, **deep, params={"K": [["n0", "x", 1.0]]}).errors
    assert item.pointer == "/params/K"
    assert jobs.submit(session, _request(**deep, params={"alpha": 5.0, "repair": "raise"})).state == "queued"


@pytest.mark.parametrize("solver", ["orthogonal_transfer", "weston_watkins"])
def test_labels_that_a_hierarchy_does_not_have_are_refused_by_name(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str], solver: str
) -> None:
    dataset()
    hierarchy([("root", "class0"), ("class0", "class3")])
    (item,) = _refused(session, solver=solver, hierarchy="tree").errors
    assert item.pointer == "/hierarchy"
    assert "tree has no node for 2 labels of training rows: 'class1', 'class2'" in item.detail
    assert "unknown_labels='drop'" in item.detail
    assert jobs.submit(session, _request(solver=solver, hierarchy="tree", unknown_labels="keep")).state == "queued"
    hierarchy([("root", "x"), ("x", "y")], "strange")
    (item,) = _refused_again(session, solver=solver, hierarchy="strange").errors
    assert "labels of training rows are in strange, such as 'class0'" in item.detail
    assert item.detail.endswith("is it the right hierarchy?")


def test_labels_of_test_rows_alone_may_be_other_nodes_of_the_hierarchy(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(CSV + "one,c,test\nsix,d,test\ntwo,a,test\n", format="csv")
    id = hierarchy([("root", "a"), ("root", "b"), ("b", "c")])
    tree = {"solver": "orthogonal_transfer", "hierarchy": "tree"}
    (item,) = _refused(session, **tree, unseen_labels="refuse").errors
    assert (item.pointer, "1 such label, such as 'd'" in item.detail) == ("/unseen_labels", True)
    assert jobs.submit(session, _request(**tree)).hierarchy == id


SETS = "a,b 1:1\nb 1:2\n 1:3\nc 2:1\n"


def test_sets_of_labels_need_a_method_that_takes_them_and_a_hierarchy_that_has_them(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(SETS, label_separator=",")
    hierarchy([("root", "a"), ("a", "b"), ("a", "c")])
    (item,) = _refused(session, solver="transfer", hierarchy="tree").errors
    assert (item.pointer, "needs one label per row" in item.detail) == ("/solver", True)
    assert jobs.submit(session, _request(solver="hm3")).state == "queued"
    assert jobs.submit(session, _request(solver="hm3", hierarchy="tree")).state == "queued"
    hierarchy([("root", "a"), ("a", "x")], "other")
    (item,) = _refused_again(session, solver="hm3", hierarchy="other").errors
    assert item.pointer == "/hierarchy"
    assert "other has no node for 2 labels: 'b', 'c'" in item.detail


def test_without_a_hierarchy_no_label_may_be_called_as_the_top_of_one(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset("a,root 1:1\nb 1:2\n", label_separator=",")
    (item,) = _refused(session, solver="hm3").errors
    assert (item.pointer, "'root'" in item.detail) == ("/dataset", True)


def test_lists_of_labels_that_were_read_as_one_name_are_recognised(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset("label,x\na,1\nb; c,2\n", format="csv")
    hierarchy([("root", "a"), ("a", "b"), ("a", "c")])
    (item,) = _refused(session, solver="transfer", hierarchy="tree").errors
    assert item.detail.endswith("'b; c' is a list of nodes: upload the dataset with label_separator=';'")


def test_a_hierarchy_in_use_is_never_deleted(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset()
    hierarchy()
    id = jobs.submit(session, _request(hierarchy="tree")).id
    with pytest.raises(Conflict, match=id):
        hierarchies.delete(session, "tree", force=True)
    jobs.cancel(session, id)
    hierarchies.delete(session, "tree")
    assert jobs.get(session, id).hierarchy is None
    with pytest.raises(Conflict, match="hierarchy was deleted"):
        jobs.retry(session, id)


def test_a_text_recipe_for_a_dataset_without_texts_is_refused(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    (item,) = _refused(session, text=TextRecipe(min_df=1)).errors
    assert item.pointer == "/text"


def test_a_dataset_that_is_not_there_or_not_ready_is_refused(session: Session) -> None:
    with pytest.raises(NotFound, match="digits"):
        jobs.submit(session, _request())
    upload = files().upload()
    upload.write(b"a 1:1\nb 1:2\n")
    datasets.register(session, NewDataset(name="digits", format="svmlight"), upload)
    with pytest.raises(Conflict, match="importing"):
        jobs.submit(session, _request())


def test_a_dataset_is_found_by_id_and_by_name(session: Session, dataset: Callable[..., str]) -> None:
    id = dataset()
    assert jobs.submit(session, _request()).dataset == id
    assert jobs.submit(session, _request(dataset=id)).dataset == id


def test_submitting_needs_no_redis(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    job = jobs.submit(session, _request())
    row = session.get(tables.Job, job.id, populate_existing=True)
    assert row is not None
    assert (row.state, row.notified_at) == ("queued", None)


def test_submitting_rings_with_the_id_alone(session: Session, dataset: Callable[..., str], redis_server: Any) -> None:
    dataset()
    job = jobs.submit(session, _request())
    with redis_server.client() as client:
        (message,) = [message for message in client.lrange("general", 0, -1) if job.id.encode() in message]
    assert b"digits" not in message
    row = session.get(tables.Job, job.id, populate_existing=True)
    assert row is not None
    assert row.notified_at is not None


def test_a_queued_job_is_cancelled_at_once_and_can_be_tried_again(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset()
    id = jobs.submit(session, _request()).id
    assert jobs.cancel(session, id).state == "cancelled"
    assert jobs.cancel(session, id).state == "cancelled"
    again = jobs.retry(session, id)
    assert (again.state, again.finished_at) == ("queued", None)


def test_jobs_are_listed_by_state(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    ids = [jobs.submit(session, _request()).id for _ in range(3)]
    jobs.cancel(session, ids[1])
    assert [job.id for job in jobs.page(session, state="queued").items] == [ids[2], ids[0]]
    assert [job.id for job in jobs.page(session, state="cancelled").items] == [ids[1]]
    assert jobs.page(session).items[-1].kind == "import"


def test_what_is_not_there_is_not_found(session: Session) -> None:
    for call in (jobs.get, jobs.cancel, jobs.retry, job_logs.steps, job_logs.read):
        with pytest.raises(NotFound):
            call(session, "0" * 32)
    with pytest.raises(InvalidInput, match="limit"):
        job_logs.steps(session, "0" * 32, limit=0)
