import detectors
import numpy as np
import pytest
import tensorflow as tf

from experiments.workloads.ssd.boxes import Level, default_boxes
from experiments.workloads.ssd.encoding import encode
from experiments.workloads.ssd.loss import MultiBoxLoss
from experiments.workloads.ssd.matching import match

CLASSES = 3
DEFAULTS = default_boxes(
  64, [Level(4, 16, 16, 28, (2,)), Level(2, 32, 28, 44, (2,))]
)


def _batch(seed, images=3):
  rng = np.random.RandomState(seed)
  objects = np.stack(
    [detectors.random_objects(rng, 5, CLASSES) for _ in range(images)]
  )
  shape = images, len(DEFAULTS), 5 + CLASSES
  return objects, rng.normal(size=shape).astype(np.float32)


def _reference(objects, outputs, negatives):
  """The loss of one image, by the formulas of the paper."""
  boxes, classes = (x[0].numpy() for x in match(objects[None], DEFAULTS))
  logits = outputs[:, 4:].astype(np.float64)
  probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  surprise = -np.log(probabilities[np.arange(len(classes)), classes])
  found = classes > 0
  count = found.sum()
  if not count:
    return 0.0
  hardest = np.sort(surprise[~found])[::-1][: negatives * count]
  distance = np.abs(outputs[:, :4] - encode(boxes, DEFAULTS))[found]
  distance = np.where(distance < 1, distance**2 / 2, distance - 0.5)
  return (distance.sum() + surprise[found].sum() + hardest.sum()) / count


@pytest.mark.parametrize("negatives", [0, 1, 3, 1_000])
def test_the_loss_is_that_of_the_paper(negatives):
  objects, outputs = _batch(seed=negatives)
  expected = [_reference(*one, negatives) for one in zip(objects, outputs)]
  loss = MultiBoxLoss(DEFAULTS, negatives=negatives)
  np.testing.assert_allclose(loss.call(objects, outputs), expected, rtol=1e-4)
  np.testing.assert_allclose(
    loss(objects, outputs), np.mean(expected), rtol=1e-4
  )


def test_a_detector_that_is_right_has_hardly_any_loss():
  objects, _ = _batch(seed=0)
  outputs = detectors.outputs(objects, DEFAULTS, CLASSES)
  assert float(MultiBoxLoss(DEFAULTS)(objects, outputs)) < 1e-5


def test_it_can_be_compiled():
  objects, outputs = _batch(seed=0)
  loss = MultiBoxLoss(DEFAULTS)
  compiled = tf.function(loss.call, jit_compile=True)
  np.testing.assert_allclose(
    compiled(tf.constant(objects), tf.constant(outputs)),
    loss.call(objects, outputs),
    rtol=1e-5,
  )


def _gradient(objects, outputs):
  outputs = tf.constant(outputs)
  with tf.GradientTape() as tape:
    tape.watch(outputs)
    loss = MultiBoxLoss(DEFAULTS)(objects, outputs)
  return tape.gradient(loss, outputs).numpy()


def test_an_image_without_objects_teaches_nothing():
  objects, outputs = _batch(seed=0, images=2)
  objects[1] = 0
  gradient = _gradient(objects, outputs)
  assert gradient[0].any() and not gradient[1].any()


def test_only_the_hardest_of_the_background_teach():
  objects, outputs = _batch(seed=0, images=1)
  _, classes = match(objects, DEFAULTS)
  count = np.count_nonzero(classes)
  taught = _gradient(objects, outputs)[0].any(axis=1)
  assert np.count_nonzero(taught) == 4 * count


def test_a_box_without_a_size_has_a_finite_gradient():
  objects, outputs = _batch(seed=0, images=1)
  objects[0, 0] = [0.3, 0.3, 0.3, 0.3, 1, 0]
  assert np.all(np.isfinite(_gradient(objects, outputs)))
