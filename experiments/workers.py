"""Does several training runs side by side, one process each, with progress.

A run of a small model keeps one core busy, so runs that do not share anything
are the cheapest way to use several cores.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import queue
import signal
import sys
import threading

from experiments import progress_bar

_POLL_SECONDS = 0.5

_progress = None  # in a worker: where it tells the parent how far it is


def leave_devices():
  """Keeps this process off the GPUs: it would take memory from its workers.

  To be called before TensorFlow computes anything here.
  """
  import tensorflow as tf

  tf.config.set_visible_devices([], "GPU")


def run_all(runs, *, workers, on_result):
  """Does runs in their order, as many at a time as there are workers.

  Args:
    runs: List of `RunSettings`.
    workers: Number of processes.
    on_result: Called in this process with the settings and the result of each
      run as soon as it is over; returns a line that says how it went.

  Raises:
    Exception: What a run raised; runs in flight are lost, the others are not.
  """
  if not runs:
    return
  context = multiprocessing.get_context("spawn")  # TensorFlow does not fork
  progress = context.Queue()
  pool = concurrent.futures.ProcessPoolExecutor(
    min(workers, len(runs)),
    mp_context=context,
    initializer=_start_worker,
    initargs=(progress,),
  )
  try:
    with progress_bar.bar(len(runs), unit="run") as bar:
      futures = {pool.submit(_work, settings): settings for settings in runs}
      for future in _as_completed(futures, progress, bar):
        line = on_result(futures[future], future.result())
        bar.write(line, file=sys.stderr)
        bar.update()
  except BaseException:
    _stop(pool)
    raise
  pool.shutdown()


def _as_completed(futures, progress, bar):
  """Yields futures that are done, and shows meanwhile what the others do."""
  pending = set(futures)
  running = {}
  while pending:
    done, pending = concurrent.futures.wait(
      pending, _POLL_SECONDS, concurrent.futures.FIRST_COMPLETED
    )
    for run, state in _drain(progress):
      running[run] = state
    for future in done:
      running.pop(str(futures[future]), None)
    bar.set_postfix_str(
      "; ".join(f"{run}: {state}" for run, state in running.items()),
      refresh=False,
    )
    bar.update(0)  # draws it, unless that was done a moment ago
    yield from done


def _drain(progress):
  with contextlib.suppress(queue.Empty):
    while True:
      yield progress.get_nowait()


def _stop(pool):
  """Ends the workers, now, in the middle of what they do."""
  pool.shutdown(wait=False, cancel_futures=True)
  for process in multiprocessing.active_children():
    process.terminate()


def _start_worker(progress):
  global _progress
  _progress = progress
  # Ctrl-C reaches every process of the terminal; the parent decides.
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  threading.Thread(target=_exit_with_parent, daemon=True).start()
  import tensorflow as tf

  tf.config.threading.set_intra_op_parallelism_threads(1)
  for device in tf.config.list_physical_devices("GPU"):
    # Several processes share it; the first must not take all of its memory.
    tf.config.experimental.set_memory_growth(device, True)


def _exit_with_parent():
  """Ends this process if the parent is killed and can't end it."""
  multiprocessing.parent_process().join()
  os._exit(1)


def _work(settings):
  from experiments import training_run

  def tell(step, metric):
    _progress.put((str(settings), f"step {step}, {metric:.3f}"))

  return training_run.run(settings, on_evaluation=tell)
