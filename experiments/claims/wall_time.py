"""Claim 7: behind a slow network, several times less wall time."""

from __future__ import annotations

from experiments import summary
from experiments.arms import Arm
from experiments.claims.evidence import (
  FAILS,
  HOLDS,
  IN_PART,
  MIN_SEEDS,
  UNTESTED,
  Verdict,
)

CLAIM = "ResNet-50 on ImageNet, read over a network: 3.25 times less wall time"
_CLAIMED = 3.25


def judge(recorded):
  """Returns the verdict; other workloads say only what was found there."""
  best = [
    row
    for comparison in recorded.to_target
    for row in _best_of_each_upstream(comparison)
  ]
  is_testable = best and recorded.is_of("resnet50_imagenet")
  return Verdict(
    CLAIM,
    _answer(max(row.speedup for row in best)) if is_testable else UNTESTED,
    "; ".join(map(_shown, best)),
    "" if is_testable else "`--workload=resnet50_imagenet --preset=paper`",
  )


def _best_of_each_upstream(comparison):
  """The fastest of the echoes with a fixed factor, which the claim is about."""
  rows = [r for r in summary.timed(comparison.runs) if r.runs >= MIN_SEEDS]
  baselines = {_upstream(row) for row in rows if row.arm == Arm()}
  best = {}
  for row in sorted(rows, key=lambda row: row.speedup or 0):
    is_fixed = row.arm.is_echo and not row.arm.on_stall
    if is_fixed and row.speedup and _upstream(row) in baselines:
      best[_upstream(row)] = row
  return [row for _, row in sorted(best.items())]


def _upstream(row):
  return row.upstream_ms, row.upstream_jitter


def _answer(speedup):
  if speedup >= _CLAIMED:
    return HOLDS
  return IN_PART if speedup > 1 else FAILS


def _shown(row):
  jitter = f", jitter {row.upstream_jitter:g}" if row.upstream_jitter else ""
  return (
    f"behind {row.upstream_ms:g} ms an example{jitter}, at best "
    f"{row.speedup:.1f} times ({row.arm}, R = {row.ratio:.1f})"
  )
