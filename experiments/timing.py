"""How long an echoed pipeline takes: the time model of the method.

With both sides of the echo running in parallel, a fresh example costs the time
of the slower side: upstream works on it once, downstream works on each of its
`factor` copies.

```python
seconds_per_fresh_example(4, upstream=0.010, downstream=0.002)  # 0.010
speedup(4, ratio=5)                                             # 4
speedup(8, ratio=5)                                             # 5
```

Source: D. Choi, A. Passos, C. Shallue, G. Dahl, "Faster Neural Network Training
with Data Echoing", arXiv 1907.05550, section 2.
"""


def seconds_per_fresh_example(factor, *, upstream, downstream):
  """Returns `max(upstream, factor * downstream)`.

  Args:
    factor: Echoing factor, 1 without an echo.
    upstream: Seconds that the stages before the echo need for an example.
    downstream: Seconds that the stages behind the echo, and the training, need
      for one copy of an example.

  Returns:
    Seconds.
  """
  return max(upstream, factor * downstream)


def speedup(factor, *, ratio):
  """Returns how much more copies a second an echo makes the training see.

  It is also how much sooner training ends, if a repeated example is worth as
  much as a fresh one: the upper bound of what echo can give.

  Args:
    factor: Echoing factor.
    ratio: Upstream over downstream time, R. Below 1 training waits for no
      input, and echo gains nothing.

  Returns:
    `max(1, min(factor, ratio))`.
  """
  return max(1, min(factor, ratio))
