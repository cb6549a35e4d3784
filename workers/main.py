"""``python -m workers.main --queue general --concurrency 2``: a pool of processes that run jobs."""

import argparse
import gc


def main(queue: str, concurrency: int) -> None:
    """Run a worker until SIGTERM: then its jobs are given back, and it ends.

    Parameters
    ----------
    concurrency : int
        Jobs that may run at the same time, one process each; in the general pool one more process takes imports alone.
    """
    gc.disable()  # a fifth of the time that the modules below take to be imported
    from workers.pool import run_pool

    # what is imported stays, and the pool's processes share its memory: no collection looks through it
    gc.freeze()
    gc.enable()
    run_pool(queue, concurrency)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queue", default="general")
    parser.add_argument("--concurrency", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.queue, arguments.concurrency)
