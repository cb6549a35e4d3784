"""The list of deliberate faults fits the code."""

from mutants import MUTANTS, faults


def test_every_fault_can_still_be_put_into_the_code() -> None:
    assert len(MUTANTS) >= 40
    assert faults(MUTANTS) == []
