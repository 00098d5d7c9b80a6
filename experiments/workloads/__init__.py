"""The training tasks, by name and preset.

```python
workload = workloads.get("resnet32_cifar10", "small")
```

A module per workload; each has a dict `PRESETS` from the name of a preset to a
function that returns the `Workload`. Presets differ in data and sizes, not in
code. A module is imported when it is asked for, so that one workload does not
need what another depends on.
"""

import importlib

from experiments.workloads import augmented
from experiments.workloads.workload import Workload

NAMES = (
  "resnet32_cifar10",
  "resnet50_imagenet",
  "transformer_lm1b",
  "transformer_common_crawl",
  "ssd_coco",
)

__all__ = ["NAMES", "Workload", "get", "presets"]


def presets(name):
  """Returns the names of the presets of the workload `name`."""
  return tuple(_module(name).PRESETS)


def get(name, preset, *, augmentation=None):
  """Returns a workload.

  Args:
    name: One of `NAMES`.
    preset: One of `presets(name)`.
    augmentation: One of `augmented.NAMES`, to be done behind the workload's
      own; or None.

  Returns:
    A `Workload`.

  Raises:
    ValueError: If there is no such workload, preset or augmentation.
  """
  factories = _module(name).PRESETS
  if preset not in factories:
    raise ValueError(
      f"`preset` must be one of {', '.join(factories)}, got {preset!r}"
    )
  workload = factories[preset]()
  if augmentation is None:
    return workload
  return augmented.augmented(workload, augmentation)


def _module(name):
  if name not in NAMES:
    raise ValueError(
      f"`workload` must be one of {', '.join(NAMES)}, got {name!r}"
    )
  return importlib.import_module(f"{__name__}.{name}")
