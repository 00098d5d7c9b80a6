"""What `echo_on_stall` promises: no waiting, and no repeats for nothing.

    python -m experiments.benchmark --suite=stall

R is upstream's time for a fresh example over the training's time for a copy.
Up to R = 8, an echo on stall of at most 8 copies should make the training wait
no more than at R = 0.5, where there is nothing to wait for, and it should make
R copies: for fewer the training waits, more take work from fresh examples. All
sizes are those that `tfecho.Pipeline` chooses.

Beside it, behind the same upstream, stand a pipeline without an echo and one
with the fixed factor that suits this R best, which nobody knows in advance: by
the time model of Choi et al., arXiv 1907.05550, min(max(R, 1), 8), which is
also what the copies of the echo on stall are held against. Waiting is a share
of the time, repeats and doubles (of an example in the same batch) are shares of
the examples; shares are compared by their difference.
"""

import functools

import tensorflow as tf

import tfecho
from experiments.benchmark import drive, stall_stopping, stall_trial
from experiments.benchmark.runner import Bound, Case
from experiments.benchmark.stall_trial import BATCH_SIZE, MAX_FACTOR, Feed

RATIOS = (0.5, 0.9, 1.2, 1.5, 2, 4, 8, 12)
FIT_RATIOS = (0.5, 2, 8)

# A burst is as large as the buffer of the echo, two batches.
FLUCTUATIONS = {"jittery": {"jitter": 1.0}, "bursty": {"burst": 2 * BATCH_SIZE}}
PLACES = {"example": "decode", "batch": "batch"}

WAITING = 0.02
COPIES = {"example": 0.10, "batch": 0.05}
REPEATS = {"example": 0.02, "batch": 0.01}

MAX_ROUNDS = 3


def cases():
  """Upstreams at every pace, one that slows down, `fit`, and the costs."""
  return [
    *(_constant(level) for level in PLACES),
    *(_fluctuating(level, how) for how in FLUCTUATIONS for level in PLACES),
    _shuffled(),
    *(_slowed_down(level) for level in PLACES),
    _fit(),
    *(_one_copy(buffer_size) for buffer_size in (2, 64)),
    *(_stopped(how) for how in stall_stopping.WAYS),
  ]


def _constant(level):
  bounds = [
    *_little_waiting(RATIOS, bounded=MAX_FACTOR),
    *_as_many_copies_as_needed(RATIOS, level, bounded=max(RATIOS)),
    *_no_idle_repeats(level, doubles=0),
    *_beside("fixed", "waiting"),
    *_beside("no echo", "waiting"),
  ]
  if level == "example":  # a batch that comes again has no doubles
    bounds += _beside("fixed", "doubles")
  contenders = {
    "on stall": _on_stall(level),
    "fixed": _fixed(level),
    "no echo": _no_echo(),
  }
  return _case(f"{level} level, constant upstream", contenders, bounds)


def _fluctuating(level, how):
  """Beyond half of the factor, a pause may be longer than what is in memory."""
  return _case(
    f"{level} level, {how} upstream",
    {
      "on stall": _on_stall(level, FLUCTUATIONS[how]),
      "fixed": _fixed(level, FLUCTUATIONS[how]),
    },
    [
      *_little_waiting(RATIOS, bounded=MAX_FACTOR / 2),
      *_as_many_copies_as_needed(RATIOS, level, bounded=MAX_FACTOR / 2),
      *_beside("fixed", "waiting"),
    ],
  )


def _shuffled():
  """A shuffle behind the echo, counted into its warm-up."""
  buffer_size = 8 * BATCH_SIZE
  feed = Feed(stall_trial.shuffled(buffer_size))
  return _case(
    f"example level, shuffle of {buffer_size} behind",
    {"on stall": _at_every_pace(feed.start)},
    [
      *_little_waiting(RATIOS, bounded=MAX_FACTOR),
      *_as_many_copies_as_needed(RATIOS, "example", bounded=MAX_FACTOR),
      # A shuffle may put a rare repeat anywhere.
      *_no_idle_repeats("example", doubles=None),
    ],
  )


def _slowed_down(level):
  feed = stall_trial.pipeline(PLACES[level], max_factor=MAX_FACTOR)
  return _case(
    f"{level} level, upstream slows down from R = 0.5 to 4",
    {"on stall": lambda: lambda: stall_trial.slowed_down(feed, 0.5, 4)},
    [
      Bound(
        "on stall, waiting after",
        "on stall, waiting before",
        WAITING,
        "excess",
      )
    ],
  )


def _fit():
  def probe():
    # One after the other: `fit` is not made for threads.
    results = {ratio: stall_trial.fit(ratio) for ratio in FIT_RATIOS}
    return stall_trial.named_by_ratio(results)

  return _case(
    "example level, model.fit",
    {"on stall": lambda: probe},
    [
      *_little_waiting(FIT_RATIOS, bounded=MAX_FACTOR),
      *_as_many_copies_as_needed(FIT_RATIOS, "example", bounded=MAX_FACTOR),
    ],
  )


def _one_copy(buffer_size):
  """What the transformation costs where nothing is ever repeated."""
  def cost(transformation):
    scalars = tf.data.Dataset.range(10**15)
    return drive.cost_of(transformation(scalars), stride=10_000)

  def echo(dataset):
    return dataset.apply(tfecho.echo_on_stall(1, buffer_size=buffer_size))

  return Case(
    what=f"scalars, buffer of {buffer_size}",
    unit="us",
    contenders={
      "max_factor=1": functools.partial(cost, echo),
      "prefetch": functools.partial(cost, lambda ds: ds.prefetch(buffer_size)),
    },
    bounds=[Bound("max_factor=1", "prefetch", 1.25)],
  )


def _stopped(how):
  return Case(
    what=f"{how} while upstream blocks",
    unit="s",
    contenders={
      name: lambda name=name: lambda: stall_stopping.seconds(how, name)
      for name in stall_stopping.TRANSFORMATIONS
    },
    bounds=[Bound("echo_on_stall", "prefetch", 0.3, "excess")],
    max_rounds=MAX_ROUNDS,
  )


def _case(what, contenders, bounds):
  contenders = {**contenders, "nothing": lambda: lambda: 0.0}
  return Case(what, "-", contenders, bounds, MAX_ROUNDS)


def _on_stall(level, fluctuation=None):
  pipeline = stall_trial.pipeline(PLACES[level], max_factor=MAX_FACTOR)
  return _at_every_pace(Feed(pipeline, fluctuation or {}).start)


def _fixed(level, fluctuation=None):
  """The echo of the factor that is best for each pace, and known here only."""
  def start(ratio):
    echo = {"factor": stall_trial.clamped(ratio)}
    if level == "example":
      echo["echo_buffer"] = 2 * BATCH_SIZE  # full sooner than the default
    pipeline = stall_trial.pipeline(PLACES[level], **echo)
    return Feed(pipeline, fluctuation or {}, settle_fresh=3).start(ratio)

  return _at_every_pace(start)


def _no_echo():
  return _at_every_pace(Feed(stall_trial.pipeline(), settle_fresh=3).start)


def _at_every_pace(start):
  """A contender of all `RATIOS`; its costs are called "R = 4, waiting"."""
  return lambda: lambda: stall_trial.side_by_side(start, RATIOS)


def _little_waiting(ratios, *, bounded):
  """Waiting at each R above the first, where there is nothing to wait for."""
  return [
    Bound(
      f"on stall, R = {ratio:g}, waiting",
      f"on stall, R = {ratios[0]:g}, waiting",
      WAITING if ratio <= bounded else None,
      "excess",
    )
    for ratio in ratios[1:]
  ]


def _as_many_copies_as_needed(ratios, level, *, bounded):
  return [
    Bound(
      f"on stall, R = {ratio:g}, copies",
      f"on stall, R = {ratio:g}, ideal copies",
      COPIES[level] if ratio <= bounded else None,
      "deviation",
    )
    for ratio in ratios
  ]


def _no_idle_repeats(level, *, doubles):
  """No repeats where upstream keeps up, and at most these in a batch."""
  limits = {"repeats": REPEATS[level], "doubles": doubles}
  return [
    Bound(f"on stall, R = {ratio:g}, {name}", "nothing", at_most, "excess")
    for name, at_most in limits.items()
    for ratio in RATIOS
    if ratio <= 0.9
  ]


def _beside(name, quantity):
  """What it would be otherwise, for comparison."""
  return [
    Bound(
      f"on stall, R = {ratio:g}, {quantity}",
      f"{name}, R = {ratio:g}, {quantity}",
      compare="excess",
    )
    for ratio in RATIOS
  ]
