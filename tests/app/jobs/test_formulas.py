"""What methods minimise, as formulas that browsers draw."""

from defusedxml.ElementTree import fromstring

from app.jobs.routes import list_solvers
from solvers.registry import SOLVERS


def test_every_method_tells_what_it_minimises_as_mathml_without_a_command_left_over() -> None:
    for each in list_solvers().items:
        if SOLVERS[each.name].chooses:
            assert (each.formula, each.mathml) == (None, None)
            continue
        assert each.mathml is not None, f"{each.name} has no formula: set it to what is minimised, in TeX"
        drawn = fromstring(each.mathml)
        assert drawn.tag.endswith("math")
        assert "\\" not in "".join(drawn.itertext()), each.name
