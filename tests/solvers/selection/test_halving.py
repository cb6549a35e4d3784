"""Successive halving: who is tried next, and who has won."""

from solvers.selection.halving import Result, Round, next_round, ranked


def _play(values: list[float | None], factor: int | None, done_after: int = 10**9) -> tuple[list[Round], list[int]]:
    """All rounds, where settings are worth what they say and are complete after so many epochs; and the ranking."""
    results: dict[tuple[int, int], Result] = {}
    rounds = []
    while (due := next_round(len(values), results, factor, 2)) is not None:
        rounds.append(due)
        for number in due.numbers:
            complete = due.max_epochs is None or due.max_epochs >= done_after
            results[number, due.rung] = Result(number, due.rung, values[number], complete)
    return rounds, [result.number for result in ranked(results.values())]


def test_without_halving_all_are_tried_once_to_their_end() -> None:
    assert _play([1.0, 3.0, 2.0], None) == ([Round(0, [0, 1, 2], None)], [1, 2, 0])


def test_each_round_takes_the_best_part_of_the_one_before_with_more_epochs() -> None:
    rounds, ranking = _play([float(i) for i in range(10)], 3)
    assert rounds == [Round(0, list(range(10)), 2), Round(1, [9, 8, 7, 6], 6), Round(2, [9, 8], None)]
    assert ranking == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_what_is_complete_is_not_tried_again() -> None:
    rounds, ranking = _play([1.0, 2.0, 3.0, 4.0, 5.0], 2, done_after=2)
    assert rounds == [Round(0, [0, 1, 2, 3, 4], 2)]
    assert ranking[0] == 4


def test_what_has_failed_leaves_its_place_to_others() -> None:
    rounds, ranking = _play([None, 2.0, None, 1.0, None], 2)
    assert [each.numbers for each in rounds] == [[0, 1, 2, 3, 4], [1, 3]] or rounds[-1].numbers == [1, 3]
    assert ranking == [1, 3]
    assert _play([None, None], 2)[1] == []


def test_equal_values_go_by_the_number() -> None:
    assert _play([1.0, 1.0, 1.0], None)[1] == [0, 1, 2]
