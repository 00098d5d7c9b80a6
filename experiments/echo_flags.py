"""The flags that say how an echo is made, for every script that trains."""

from __future__ import annotations

from absl import flags

from experiments import implementations

ECHO_BUFFER = flags.DEFINE_integer(
  "echo_buffer",
  512,
  "Shuffle buffer behind the echo, in fresh examples, each held once; at least "
  "two batches.",
)
IMPLEMENTATION = flags.DEFINE_enum(
  "implementation",
  "auto",
  implementations.NAMES,
  "Which implementation of echo and shuffle to use, a name, without unit: "
  "`auto` is `native` where it can be built, else `graph`.",
)


def check_echo_buffer(held, batch_size):
  """Checks that the copies of an example can be kept out of one batch.

  Raises:
    ValueError: If the buffer holds less than two batches; the message starts
      with the flag.
  """
  least = 2 * batch_size
  if held < least:
    raise ValueError(
      f"--echo_buffer: must be at least {least}, two batches, got {held}"
    )
