"""Progress bars of long calls: tqdm's in notebooks, rich's in terminals, and none where the output is neither."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# calls that end sooner have no bar
DELAY_SECONDS = 0.5

Update = Callable[[float, str], None]


@contextmanager
def progress_bar(wanted: bool | None, title: str, total: float | None, unit: str = "") -> Iterator[Update]:
    """A bar for the time of a call.

    Parameters
    ----------
    wanted : bool or None
        False: no bar; True: a bar also where the output is neither a terminal nor a notebook.
    title : str
    total : float or None
        What ``completed`` comes to; None: not known.
    unit : {"", "B"}
        B: bytes.

    Yields
    ------
    callable
        Takes what is completed so far and a few words.
    """
    bar: _Bar | None = None
    begun = time.monotonic()
    make = _maker(wanted)

    def update(completed: float, words: str = "") -> None:
        nonlocal bar
        if make is None or (bar is None and time.monotonic() - begun < DELAY_SECONDS):
            return
        if bar is None:
            bar = make(title, total, unit)
        bar.update(completed, words)

    try:
        yield update
    finally:
        if bar is not None:
            bar.close()


class _Bar:
    """One bar."""

    def update(self, completed: float, words: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _NotebookBar(_Bar):
    def __init__(self, title: str, total: float | None, unit: str) -> None:
        from tqdm.auto import tqdm

        shape = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}" if total == 1 else None
        with warnings.catch_warnings():
            # without ipywidgets it draws a bar of characters, and warns
            warnings.simplefilter("ignore")
            self._bar: Any = tqdm(
                desc=title, total=total, unit=unit or "it", unit_scale=bool(unit), bar_format=shape, leave=False
            )

    def update(self, completed: float, words: str) -> None:
        self._bar.set_postfix_str(words, refresh=False)
        self._bar.update(completed - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


class _TerminalBar(_Bar):
    """A line of one live display, which all bars of a process share."""

    _display: Any = None
    _open = 0

    def __init__(self, title: str, total: float | None, unit: str) -> None:
        cls = _TerminalBar
        if cls._display is None:
            cls._display = _display()
            cls._display.start()
        cls._open += 1
        self._total = total
        self._task = cls._display.add_task(title, total=total, words="")

    def update(self, completed: float, words: str) -> None:
        _TerminalBar._display.update(self._task, completed=None if self._total is None else completed, words=words)

    def close(self) -> None:
        cls = _TerminalBar
        cls._display.remove_task(self._task)
        cls._open -= 1
        if cls._open == 0:
            cls._display.stop()
            cls._display = None


def _display() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    title, words = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[words]}"))
    return Progress(title, BarColumn(), TimeElapsedColumn(), words, console=Console(stderr=True), transient=True)


def _maker(wanted: bool | None) -> Callable[[str, float | None, str], _Bar] | None:
    if wanted is False:
        return None
    if "ipykernel" in sys.modules:
        return _NotebookBar if _has_tqdm() else None
    return _TerminalBar if wanted or _is_terminal() else None


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _has_tqdm() -> bool:
    try:
        import tqdm  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True
