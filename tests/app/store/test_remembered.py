import threading

import pytest
from sqlalchemy.exc import OperationalError

from app import short_cache as remembered
from app.errors import NotFound
from app.short_cache import Refreshing, Remembered


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(remembered.time, "monotonic", lambda: self.now)


class Source:
    """A database of one value, which may be gone or away."""

    def __init__(self) -> None:
        self.value: str | None = "old"
        self.away = False
        self.n_asked = 0

    def __call__(self, key: str) -> str:
        self.n_asked += 1
        if self.away:
            raise OperationalError("select", {}, Exception("away"))
        if self.value is None:
            raise NotFound("gone")
        return self.value


def test_an_answer_holds_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, source = Clock(monkeypatch), Source()
    known = Remembered(source)
    assert known.ready("a") is None
    assert known.get("a") == "old"
    clock.now += 0.89
    assert known.ready("a") == "old"
    clock.now += 0.02
    assert known.ready("a") is None


def test_a_refreshed_answer_holds_from_when_it_was_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, source = Clock(monkeypatch), Source()
    known = Remembered(source)
    known.get("a")
    source.value = "new"
    clock.now += 0.5
    known.refresh()
    assert known.ready("a") == "new"
    clock.now += 0.8
    assert known.ready("a") == "new"


def test_what_is_gone_is_not_served_after_it_was_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source()
    known = Remembered(source)
    known.get("a")
    source.value = None
    known.refresh()
    assert known.ready("a") is None
    with pytest.raises(NotFound):
        known.get("a")


def test_while_the_database_is_away_answers_stay_until_they_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, source = Clock(monkeypatch), Source()
    known = Remembered(source)
    known.get("a")
    source.away = True
    clock.now += 0.5
    known.refresh()
    assert known.ready("a") == "old"
    clock.now += 0.6
    known.refresh()
    assert known.ready("a") is None


def test_what_nobody_asks_for_any_more_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, source = Clock(monkeypatch), Source()
    known = Remembered(source)
    known.get("a")
    clock.now += 61
    known.refresh()
    known.refresh()
    assert source.n_asked == 1


def test_what_was_asked_before_all_was_forgotten_is_not_remembered() -> None:
    asked, answering = threading.Event(), threading.Event()

    def ask(key: str) -> str:
        asked.set()
        assert answering.wait(60)
        return "old"

    known = Remembered(ask)
    thread = threading.Thread(target=known.get, args=("a",))
    thread.start()
    assert asked.wait(60)
    known.forget()
    answering.set()
    thread.join()
    assert known.ready("a") is None


def test_a_known_answer_serves_while_it_is_asked_for_again() -> None:
    again, answering, answers = threading.Event(), threading.Event(), iter(["old", "new"])

    def ask(key: str) -> str:
        answer = next(answers)
        if answer == "new":
            again.set()
            assert answering.wait(60)
        return answer

    known = Remembered(ask)
    known.get("a")
    refreshing = threading.Thread(target=known.refresh)
    refreshing.start()
    assert again.wait(60)
    assert known._answers["a"].value == "old"
    answering.set()
    refreshing.join()
    assert known._answers["a"].value == "new"


def test_an_answer_that_comes_late_does_not_take_the_place_of_a_newer_one() -> None:
    asked, answering, answers = threading.Event(), threading.Event(), iter(["old", "new"])

    def ask(key: str) -> str:
        answer = next(answers)
        if answer == "old":
            asked.set()
            assert answering.wait(60)
        return answer

    known = Remembered(ask)
    first = threading.Thread(target=known.get, args=("a",))
    first.start()
    assert asked.wait(60)
    second = threading.Thread(target=known.get, args=("a",))
    second.start()
    second.join(0.2)  # time in which it would have been answered if nothing held it
    answering.set()
    first.join()
    second.join()
    assert known.ready("a") == "new"


def test_who_waited_takes_what_was_asked_since() -> None:
    source, asked, all_there = Source(), threading.Event(), threading.Event()

    def ask(key: str) -> str:
        asked.set()
        assert all_there.wait(60)
        return source(key)

    class Counted(Remembered[str, str]):
        n = 0

        def _asking_about(self, key: str) -> threading.Lock:
            self.n += 1
            if self.n == 5:
                all_there.set()
            return super()._asking_about(key)

    known = Counted(ask)
    threads = [threading.Thread(target=known.get, args=("a",)) for _ in range(5)]
    threads[0].start()
    assert asked.wait(60)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.n_asked == 2  # the first's answer may be older than the others' questions


def test_refreshing_goes_on_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_AGAIN_SECONDS", 0.001)
    thrice = threading.Event()

    class Counted(Remembered[str, str]):
        n = 0

        def refresh(self) -> None:
            self.n += 1
            if self.n == 3:
                thrice.set()

    refreshing = Refreshing([Counted(Source())])
    refreshing.start()
    assert thrice.wait(60)
    refreshing.stop()
