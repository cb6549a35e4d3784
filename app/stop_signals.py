"""Signals that ask a process to stop, as an event that can be waited for."""

import queue
import signal
import threading


def event_of(*numbers: signal.Signals) -> threading.Event:
    """An event that is set when one of these signals has come; to be called in the main thread.

    A handler runs between two instructions of the main thread, which may just hold the lock of the event in ``wait``:
    to set the event there would wait for that lock forever. ``SimpleQueue.put`` may be called at any moment, and a
    thread of its own sets the event.
    """
    stopping, come = threading.Event(), queue.SimpleQueue[None]()

    def set_when_come() -> None:
        come.get()
        stopping.set()

    for number in numbers:
        signal.signal(number, lambda *_: come.put(None))
    threading.Thread(target=set_when_come, name="stop-signals", daemon=True).start()
    return stopping
