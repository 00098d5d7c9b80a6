"""The promises of echo_on_stall, with an upstream that waits for the test.

No test goes by the clock. `Upstream` holds every element back until the test
lets it through, and `let` returns when the element is in the queue.
"""

import collections
import gc
import subprocess
import sys
import threading

import hypothesis
import hypothesis.strategies as st
import pytest
import tensorflow as tf

import tfecho

pytestmark = pytest.mark.usefixtures("native_ops")

PATIENCE = 60  # Seconds after which a test has hung.


def direct(dataset):
  """Without what TensorFlow adds to a pipeline to run it ahead."""
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  options.autotune.enabled = False
  return dataset.with_options(options)


class Upstream:
  """The numbers from 0, each when the test says so."""

  def __init__(self, n, failing=()):
    self.stats = tfecho.Stats()
    self._gate = threading.Semaphore(0)
    self._failing = failing
    self._let = 0
    self.dataset = tf.data.Dataset.range(n).map(self._hold)

  def _hold(self, x):
    def hold(x):
      assert self._gate.acquire(timeout=PATIENCE)
      if x in self._failing:
        raise ValueError(f"element {x} is broken")
      return x

    y = tf.numpy_function(hold, [x], tf.int64, stateful=False)
    return tf.ensure_shape(y, [])

  def start(self, max_factor, **arguments):
    sizes = {"buffer_size": 100, "repeat_size": 100, "warmup": 0}
    arguments = {**sizes, **arguments}
    echo = tfecho.echo_on_stall(max_factor, stats=self.stats, **arguments)
    return iter(direct(self.dataset.apply(echo)))

  def let(self, n=1):
    """Lets `n` elements through, and waits until they are in the queue."""
    self._let += n
    self.open(n)
    self.await_queued()

  def await_queued(self):
    """Waits until all that was let through is in the queue."""
    pause = threading.Event()
    for _ in range(PATIENCE * 1_000):
      if self.stats.read >= self._let:
        return
      pause.wait(0.001)
    raise AssertionError("the producer does not read")

  def open(self, n=1_000):
    """Lets `n` elements through."""
    self._gate.release(n)


class Model:
  """The rule once more: what is taken of numbers that arrive in order."""

  def __init__(self, max_factor, repeat_size):
    self.ready = collections.deque()
    self._kept = []  # (element, times emitted), least recently emitted first
    self._max_factor = max_factor
    self._repeat_size = repeat_size

  def __bool__(self):
    """Whether there is something to take."""
    return bool(self.ready or self._kept)

  def take(self):
    if self.ready:
      element, times = self.ready.popleft(), 0
      self._make_room()
    else:
      element, times = self._kept.pop(0)
    if times + 1 < self._max_factor:
      self._kept.append((element, times + 1))
    return element

  def _make_room(self):
    if len(self._kept) == self._repeat_size:
      # The most often emitted; of these the oldest, which is the smallest.
      self._kept.remove(max(self._kept, key=lambda kept: (kept[1], -kept[0])))


def take(iterator, n):
  return [int(next(iterator)) for _ in range(n)]


def started(upstream, iterator):
  """Takes element 0, so that the producer runs."""
  upstream.open(1)
  upstream._let += 1
  assert take(iterator, 1) == [0]


class TestRule:
  """Fresh if there is something, again if there is not, else wait."""

  def test_a_fresh_element_comes_before_a_repeat(self):
    upstream = Upstream(10)
    iterator = upstream.start(5)
    started(upstream, iterator)
    upstream.let(3)
    assert take(iterator, 3) == [1, 2, 3]
    upstream.open()

  def test_the_least_recently_emitted_is_repeated(self):
    upstream = Upstream(10)
    iterator = upstream.start(100)
    started(upstream, iterator)
    upstream.let(2)
    assert take(iterator, 8) == [1, 2, 0, 1, 2, 0, 1, 2]
    upstream.let()
    assert take(iterator, 5) == [3, 0, 1, 2, 3]
    upstream.open()

  def test_nothing_is_emitted_more_often_than_the_factor(self):
    upstream = Upstream(3)
    iterator = upstream.start(3)
    started(upstream, iterator)
    assert take(iterator, 2) == [0, 0]
    upstream.open(1)  # The request waits for this one; 0 is used up.
    assert take(iterator, 1) == [1]
    upstream.open()
    rest = list(iterator)
    assert collections.Counter(map(int, rest))[0] == 0

  def test_a_request_waits_only_if_nothing_may_be_repeated(self):
    upstream = Upstream(2)
    iterator = upstream.start(1)
    started(upstream, iterator)
    got = []
    request = threading.Thread(target=lambda: got.extend(take(iterator, 1)))
    request.start()
    assert not got
    upstream.open()
    request.join(timeout=PATIENCE)
    assert got == [1]

  def test_all_who_wait_get_what_may_be_repeated(self):
    upstream = Upstream(2)
    iterator = upstream.start(8)
    got, served = [], threading.Semaphore(0)

    def request():
      got.extend(take(iterator, 1))
      served.release()

    requests = [threading.Thread(target=request) for _ in range(8)]
    for thread in requests:
      thread.start()
    upstream.open(1)  # The only element for now.
    all_served = all(served.acquire(timeout=PATIENCE) for _ in requests)
    upstream.open()
    for thread in requests:
      thread.join(timeout=PATIENCE)
    assert all_served
    assert got == [0] * 8

  def test_everything_is_fresh_during_the_warmup(self):
    upstream = Upstream(10)
    iterator = upstream.start(5, warmup=3)
    got = []
    request = threading.Thread(target=lambda: got.extend(take(iterator, 3)))
    request.start()
    upstream.open(3)
    request.join(timeout=PATIENCE)
    assert got == [0, 1, 2]
    assert take(iterator, 4) == [0, 1, 2, 0]
    upstream.open()

  def test_the_most_often_emitted_leaves_a_full_memory_first(self):
    upstream = Upstream(10)
    iterator = upstream.start(100, repeat_size=2)
    started(upstream, iterator)
    assert take(iterator, 2) == [0, 0]  # Three times now.
    upstream.let()
    assert take(iterator, 2) == [1, 0]  # 0: four times, 1: once.
    upstream.let()
    assert take(iterator, 5) == [2, 1, 2, 1, 2]  # 0 made room for 2.
    upstream.open()

  def test_of_those_emitted_equally_often_the_oldest_leaves(self):
    upstream = Upstream(10)
    iterator = upstream.start(100, repeat_size=2)
    started(upstream, iterator)
    upstream.let(2)
    assert take(iterator, 4) == [1, 2, 1, 2]  # 0 made room for 2.
    upstream.open()

  @hypothesis.given(
    max_factor=st.integers(1, 5),
    repeat_size=st.integers(1, 6),
    # Fresh elements that come, then elements that are taken.
    script=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8))),
  )
  @hypothesis.settings(max_examples=50)
  def test_every_element_is_the_one_that_the_rule_says(
    self, max_factor, repeat_size, script
  ):
    upstream = Upstream(1_000)
    model = Model(max_factor, repeat_size)
    iterator = upstream.start(max_factor, repeat_size=repeat_size)
    started(upstream, iterator)
    model.ready.append(0)
    taken, expected, arrived = [0], [model.take()], 1
    for arriving, asked in script:
      if arriving:
        upstream.let(arriving)
      model.ready.extend(range(arrived, arrived + arriving))
      arrived += arriving
      while model and asked > 0:
        expected.append(model.take())
        taken += take(iterator, 1)
        asked -= 1
    assert taken == expected
    upstream.open()

  def test_nothing_is_repeated_after_the_end(self):
    upstream = Upstream(3)
    # More often than anybody could wait for, if the end was not seen.
    iterator = upstream.start(10**12)
    started(upstream, iterator)
    upstream.let(2)
    assert take(iterator, 2) == [1, 2]
    # Asked for until the producer is there.
    assert {int(x) for x in iterator} <= {0, 1, 2}
    with pytest.raises(StopIteration):
      next(iterator)

  def test_an_ended_input_is_emitted_to_its_end_without_a_repeat(self):
    dataset = tf.data.Dataset.range(5)
    stats = tfecho.Stats()
    echo = tfecho.echo_on_stall(4, buffer_size=10, warmup=10, stats=stats)
    assert [int(x) for x in dataset.apply(echo)] == [0, 1, 2, 3, 4]
    assert stats.copies == {1: 5}

  def test_upstream_works_ahead_no_further_than_the_buffer(self):
    upstream = Upstream(20)
    iterator = upstream.start(2, buffer_size=4)
    started(upstream, iterator)
    upstream.let(4)
    # The queue is full: this one stays at the gate until there is room.
    upstream.open(1)
    assert upstream.stats.read == 5
    assert take(iterator, 1) == [1]
    upstream.let(1)
    assert upstream.stats.read == 6
    upstream.open()


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("buffer_size", [1, 2, 100])
def test_a_factor_of_one_is_a_prefetch(n, buffer_size):
  dataset = tf.data.Dataset.range(n).apply(
    tfecho.echo_on_stall(1, buffer_size=buffer_size)
  )
  assert [int(x) for x in dataset] == list(range(n))
  assert len(dataset) == n


@pytest.mark.parametrize(
  "dataset, max_factor, cardinality",
  [
    (tf.data.Dataset.range(3), 2, tf.data.UNKNOWN_CARDINALITY),
    (tf.data.Dataset.range(0), 2, 0),
    (tf.data.Dataset.range(3).repeat(), 2, tf.data.INFINITE_CARDINALITY),
    (tf.data.Dataset.range(3).repeat(), 1, tf.data.INFINITE_CARDINALITY),
  ],
)
def test_the_number_of_elements_is_known_where_it_can_be(
  dataset, max_factor, cardinality
):
  dataset = dataset.apply(tfecho.echo_on_stall(max_factor, buffer_size=2))
  assert dataset.cardinality() == cardinality


def test_an_endless_input_goes_on():
  dataset = tf.data.Dataset.range(3).repeat().apply(
    tfecho.echo_on_stall(2, buffer_size=8)
  )
  assert len(list(dataset.take(100))) == 100


@hypothesis.given(
  n=st.integers(0, 40),
  max_factor=st.integers(1, 6),
  buffer_size=st.integers(1, 20),
  repeat_size=st.integers(1, 20),
  warmup=st.integers(0, 30),
)
@hypothesis.settings(max_examples=60)
def test_counts_and_order_hold_for_any_sizes(
  n, max_factor, buffer_size, repeat_size, warmup
):
  stats = tfecho.Stats()
  dataset = tf.data.Dataset.range(n).apply(
    tfecho.echo_on_stall(
      max_factor,
      buffer_size=buffer_size,
      repeat_size=repeat_size,
      warmup=warmup,
      stats=stats,
    )
  )
  order = [int(x) for x in direct(dataset)]
  counts = collections.Counter(order)
  assert list(dict.fromkeys(order)) == list(range(n))
  assert all(1 <= counts[x] <= max_factor for x in range(n))
  assert order[: min(warmup, n)] == list(range(min(warmup, n)))
  assert collections.Counter(stats.copies) == collections.Counter(
    counts.values()
  )
  assert (stats.read, stats.consumed, stats.emitted) == (n, n, len(order))


def test_the_queue_is_averaged_over_the_requests():
  upstream = Upstream(10)
  iterator = upstream.start(5)
  started(upstream, iterator)
  upstream.stats.reset()
  upstream._let = 0
  upstream.let(3)
  take(iterator, 5)  # Finds 3, 2, 1 and then twice none waiting.
  assert upstream.stats.mean_queued == 6 / 5
  upstream.stats.reset()
  assert upstream.stats.mean_queued == 0
  upstream.open()


class TestErrors:
  """Each surfaces once, in its place, and is never repeated."""

  def test_an_error_takes_its_place_among_the_elements(self):
    upstream = Upstream(4, failing=[1])
    iterator = upstream.start(100, warmup=100)
    upstream.open()
    assert take(iterator, 1) == [0]
    with pytest.raises(tf.errors.OpError, match="element 1 is broken"):
      next(iterator)
    assert take(iterator, 2) == [2, 3]
    with pytest.raises(StopIteration):
      next(iterator)

  def test_an_upstream_that_fails_at_once_says_so(self):
    upstream = Upstream(1, failing=[0])
    iterator = upstream.start(3)
    upstream.open()
    with pytest.raises(tf.errors.OpError, match="element 0 is broken"):
      next(iterator)
    with pytest.raises(StopIteration):
      next(iterator)

  def test_errors_can_be_ignored_behind_it(self):
    upstream = Upstream(5, failing=[0, 3])
    dataset = upstream.dataset.apply(
      tfecho.echo_on_stall(2, buffer_size=8, warmup=8)
    ).ignore_errors()
    upstream.open()
    assert [int(x) for x in direct(dataset)] == [1, 2, 4]


class TestStopping:
  """An iterator that is dropped leaves nothing behind."""

  def test_dropped_iterators_leave_no_thread(self):
    dataset = direct(
      tf.data.Dataset.range(100).apply(
        tfecho.echo_on_stall(2, buffer_size=4)
      )
    )
    next(iter(dataset))
    gc.collect()
    before = num_threads()
    for _ in range(300):
      next(iter(dataset))
    gc.collect()
    # Others in this process may start a few, whenever they like.
    assert num_threads() < before + 30

  def test_an_iterator_can_be_dropped_while_upstream_blocks(self):
    upstream = Upstream(3)
    iterator = upstream.start(2)
    started(upstream, iterator)
    dropped = threading.Event()

    def drop(holder):
      holder.clear()
      gc.collect()
      dropped.set()

    holder = [iterator]
    del iterator
    thread = threading.Thread(target=drop, args=(holder,))
    thread.start()
    upstream.open()  # A Python function can't be cancelled: it must return.
    assert dropped.wait(timeout=PATIENCE)
    thread.join()

  def test_the_interpreter_exits_while_upstream_blocks(self):
    subprocess.run(
      [sys.executable, "-c", EXITING], check=True, timeout=PATIENCE * 2
    )


EXITING = """
import tensorflow as tf
import tfecho

# An upstream that never gives its second element, and can be cancelled.
endless = tf.data.Dataset.range(1).repeat().filter(lambda x: x > 0)
dataset = tf.data.Dataset.range(1).concatenate(endless)
dataset = dataset.apply(tfecho.echo_on_stall(10, buffer_size=2, warmup=0))
iterator = iter(dataset)
assert int(next(iterator)) == 0
"""


def num_threads():
  with open("/proc/self/status") as status:
    return int(
      next(line for line in status if line.startswith("Threads")).split()[1]
    )


class TestCheckpoints:
  """Contents and counts survive, the interleaving does not."""

  @pytest.mark.parametrize("taken", range(0, 14))
  def test_nothing_is_lost_or_emitted_too_often(self, taken, tmp_path):
    n, max_factor = 12, 3
    dataset = direct(
      tf.data.Dataset.range(n).apply(
        tfecho.echo_on_stall(
          max_factor, buffer_size=3, repeat_size=4, warmup=2
        )
      )
    )
    iterator = iter(dataset)
    before = []
    for _ in range(taken):
      element = next(iterator, None)
      if element is not None:
        before.append(int(element))
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    restored = iter(dataset)
    tf.train.Checkpoint(iterator=restored).restore(path)
    after = [int(x) for x in restored]
    counts = collections.Counter(before + after)
    assert set(counts) == set(range(n))
    assert max(counts.values()) <= max_factor
    first = list(dict.fromkeys(before + after))
    assert first == sorted(first)

  def test_the_memory_is_restored_with_its_order_and_counts(self, tmp_path):
    upstream = Upstream(10)
    iterator = upstream.start(3, buffer_size=1)
    started(upstream, iterator)
    upstream.let()
    assert take(iterator, 3) == [1, 0, 1]
    upstream.let()
    assert take(iterator, 2) == [2, 0]  # 0 is used up; 1 twice, 2 once.
    upstream.let()  # 3 fills the queue.
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    restored = upstream.start(3, buffer_size=1)
    tf.train.Checkpoint(iterator=restored).restore(path)
    assert take(restored, 6) == [3, 1, 2, 3, 2, 3]
    upstream.open()

  # how often something is repeated after each fresh element
  @pytest.mark.parametrize(
    "script",
    [(), (0,), (2,), (1, 0, 2), (3, 3, 3, 3), (0, 0, 0, 0), (5, 0, 1, 0, 4)],
  )
  def test_what_follows_depends_on_what_was_saved_alone(self, script, tmp_path):
    """A queue of one that is full, so that the save waits for nothing."""
    sizes = {"buffer_size": 1, "repeat_size": 3}
    upstream = Upstream(1_000)
    model = Model(4, sizes["repeat_size"])
    iterator = upstream.start(4, **sizes)
    started(upstream, iterator)
    model.ready.append(0)
    assert model.take() == 0
    for fresh, repeats in enumerate(script, 1):
      upstream.let()
      model.ready.append(fresh)
      for _ in range(1 + repeats):
        assert take(iterator, 1) == [model.take()]
    upstream.let()
    model.ready.append(len(script) + 1)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    restored = upstream.start(4, **sizes)
    tf.train.Checkpoint(iterator=restored).restore(path)
    while model:
      assert take(restored, 1) == [model.take()]
    upstream.open()

  def test_a_checkpoint_of_other_sizes_is_refused(self, tmp_path):
    def iterator(**arguments):
      dataset = tf.data.Dataset.range(9).apply(
        tfecho.echo_on_stall(
          **{"max_factor": 2, "buffer_size": 3, **arguments}
        )
      )
      return iter(direct(dataset))

    saved = iterator()
    next(saved)
    path = tf.train.Checkpoint(iterator=saved).save(str(tmp_path / "it"))
    for arguments in ({"max_factor": 3}, {"buffer_size": 4}):
      other = iterator(**arguments)
      with pytest.raises(tf.errors.OpError, match="does not fit this dataset"):
        tf.train.Checkpoint(iterator=other).restore(path)

  def test_a_symbolic_checkpoint_is_refused_with_the_reason(self, tmp_path):
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = True
    dataset = tf.data.Dataset.range(9).apply(
      tfecho.echo_on_stall(2, buffer_size=3)
    )
    iterator = iter(direct(dataset).with_options(options))
    next(iterator)
    with pytest.raises(tf.errors.OpError, match="symbolic"):
      tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))


@pytest.mark.parametrize(
  "arguments, message",
  [
    ({"max_factor": 0}, "`max_factor`.*0"),
    ({"max_factor": 1.5}, "`max_factor`.*1.5"),
    ({"max_factor": True}, "`max_factor`.*True"),
    ({"buffer_size": 0}, "`buffer_size`.*0"),
    ({"buffer_size": tf.data.AUTOTUNE}, "`buffer_size`.*-1"),
    ({"repeat_size": 0}, "`repeat_size`.*0"),
    ({"warmup": -1}, "`warmup`.*-1"),
    ({"stats": 3}, "`stats`.*int"),
  ],
)
def test_bad_arguments_are_refused_by_name_and_value(arguments, message):
  arguments = {"max_factor": 2, "buffer_size": 4, **arguments}
  with pytest.raises(ValueError, match=message):
    tfecho.echo_on_stall(**arguments)
