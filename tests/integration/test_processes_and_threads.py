"""Iterators in several threads at once, and in processes made from this one."""

import collections
import concurrent.futures

import pytest
import tensorflow as tf
from iterators import values
from processes import PATIENCE, Process, ended
from transformations import each_use

THREADS = 8
ELEMENTS = 500


@each_use
def test_iterators_in_threads_do_not_disturb_each_other(use, implementation):
  dataset = use.apply(tf.data.Dataset.range(ELEMENTS), implementation)
  with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
    futures = [pool.submit(values, iter(dataset)) for _ in range(THREADS)]
    results = [future.result(PATIENCE) for future in futures]
  expected = collections.Counter(use.emits(range(ELEMENTS)))
  for result in results:
    if use.name == "echo_on_stall":  # Its warm-up is over, so it may repeat.
      assert set(result) == set(expected)
    else:
      assert use.comparable(result) == use.comparable(expected.elements())


CHILD = """
import multiprocessing
import tensorflow as tf
import tfecho
{prepare}

def echoed(queue):
  data = tf.data.Dataset.range(3)
  data = data.apply(tfecho.echo(2, implementation="native"))
  data = data.apply(tfecho.shuffle_after_echo(4))
  data = data.apply(tfecho.echo_on_stall(1, buffer_size=2))
  queue.put(sorted(int(i) for i in data))

if __name__ == "__main__":
  context = multiprocessing.get_context("{method}")
  queue = context.Queue()
  process = context.Process(target=echoed, args=(queue,))
  process.start()
  print(queue.get(timeout={patience}))
  process.join({patience})
  print(process.exitcode)
"""


@pytest.mark.parametrize(
  "method, prepare",
  [
    ("fork", ""),
    ("fork", "tfecho.native.load()"),
    ("spawn", "tfecho.native.load()"),
  ],
)
def test_a_process_made_after_the_import_echoes(
  native_ops, method, prepare, tmp_path
):
  """Before TensorFlow has run anything, that is: it does not survive a fork."""
  script = tmp_path / "parent.py"
  script.write_text(
    CHILD.format(method=method, prepare=prepare, patience=PATIENCE)
  )
  parent = Process(script, name="parent", folder=tmp_path)
  with ended([parent]):
    assert parent.wait() == 0, parent.everything()
  assert parent.output().splitlines()[-2:] == ["[0, 0, 1, 1, 2, 2]", "0"]
