"""Claim 2: on ImageNet a repeat is worth nearly as much as a fresh image."""

from __future__ import annotations

from experiments.claims.evidence import (
  FAILS,
  HOLDS,
  IN_PART,
  UNTESTED,
  Verdict,
  gain,
  needed,
)

CLAIM = (
  "ResNet-50 on ImageNet, echo before augmentation: a repeated image is worth "
  "nearly as much as a fresh one"
)
_NEARLY, _HALF = 0.9, 0.5  # of a fresh example


def judge(recorded):
  """Returns the verdict; other workloads say only what a repeat is worth."""
  found = [
    (comparison, arm, (gain(seeds, arm).value - 1) / (arm.factor - 1))
    for comparison in recorded.to_target
    for seeds in [needed(comparison)]
    for arm in seeds
    if arm.kind == "after_decode" and arm.factor > 1
  ]
  texts = [
    f"{worth:.0%} at e = {arm.factor:g}"
    + (f" with {comparison.name}" if comparison.name else "")
    for comparison, arm, worth in found
  ]
  is_testable = found and recorded.is_of("resnet50_imagenet")
  worst = min((worth for *_, worth in found), default=0)
  return Verdict(
    CLAIM,
    _answer(worst) if is_testable else UNTESTED,
    f"of a fresh example, a repeat is worth {', '.join(texts)}"
    if texts
    else "",
    "" if is_testable else "`--workload=resnet50_imagenet --preset=paper`",
  )


def _answer(worth):
  if worth >= _NEARLY:
    return HOLDS
  return IN_PART if worth >= _HALF else FAILS
