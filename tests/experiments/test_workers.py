"""Who trains: processes beside the one that plans."""

import pytest
import scripts

# No GPU is needed to see whether it would be too late to leave it.
PLANS = """
import tensorflow as tf
from absl import flags
from tensorflow.python.eager import context
from experiments import {script}

def leave(devices, kind):
  print(devices, kind, context.context()._context_handle)

tf.config.set_visible_devices = leave
flags.FLAGS(["script", "--factors=0"])
{script}.main()
"""


@pytest.mark.one_stack
@pytest.mark.parametrize("script", ["compare", "tune"])
def test_who_plans_takes_no_gpu_from_those_who_train(script):
  done = scripts.execute(PLANS.format(script=script))
  assert done.stdout == "[] GPU None\n"
  assert "error: --factors: " in done.stderr
