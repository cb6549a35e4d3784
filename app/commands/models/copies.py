"""What a smaller copy tells of itself, for a table."""

from app.commands.common.output import number
from app.schemas.jobs.compression import CopyOf


def copy_facts(copy: CopyOf) -> list[tuple[str, object]]:
    """Names and values, in words."""
    return [
        ("copy of version", copy.version),
        ("its bytes", f"{copy.size_bytes:,}"),
        ("half precision", "yes" if copy.float16 else "no"),
        ("weights set to zero", f"{copy.pruned:,} of {copy.weights:,}"),
        ("memory", f"{copy.memory_bytes:,} bytes in place of {copy.memory_bytes_source:,}"),
        ("measured on", f"{copy.n_rows:,} rows, part {copy.part}"),
        ("same first label", f"{copy.agreement:.4%} of them"),
        ("error", f"{number(copy.error)} in place of {number(copy.error_source)}"),
        ("95% interval of the loss", f"{copy.loss_low:.3g} to {copy.loss_high:.3g}"),
        ("McNemar, exact p", number(copy.mcnemar.exact)),
        ("certificate", "none of its own" + ("" if copy.gap is None else f"; the source's gap is {number(copy.gap)}")),
    ]
