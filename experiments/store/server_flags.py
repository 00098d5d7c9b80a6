"""The flags that say how slow a store is, for every script that starts one."""

from absl import flags

LATENCY_MS = flags.DEFINE_float(
  "store_ms",
  None,
  "Time from a request to the first byte of its answer, in milliseconds, of an "
  "S3 server on the loopback; needs the extra `store`.",
  lower_bound=0.0,
)
KB_PER_SECOND = flags.DEFINE_float(
  "store_kb_per_second",
  None,
  "Bandwidth of that server, for all answers together, in thousands of bytes a "
  "second. Default: no limit.",
  lower_bound=1e-3,
)
