"""What the outputs of a detector say, with everything found only once."""

import tensorflow as tf

from experiments.workloads.ssd.encoding import decode


def detections(
  outputs, defaults, *, at_most=200, overlap=0.5, least_score=0.05
):
  """Returns what was found in a batch of images.

  Within a class, what overlaps something with a higher score is left out.

  Args:
    outputs: Those of `network.detector`, of shape [batch, boxes, 5 + classes].
    defaults: The default boxes, of shape [boxes, 4].
    at_most: Number of detections that are kept of an image.
    overlap: Intersection by union above which two boxes are of one object.
    least_score: Probability below which a box is not looked at.

  Returns:
    A tuple of boxes, of shape [batch, at_most, 4]; scores and classes, each of
    shape [batch, at_most]; and the number of rows that are in use, of shape
    [batch].
  """
  outputs = tf.convert_to_tensor(outputs)
  boxes = decode(outputs[..., :4], defaults)
  scores = tf.nn.softmax(outputs[..., 4:])[..., 1:]
  boxes, scores, classes, counts = tf.image.combined_non_max_suppression(
    boxes[:, :, tf.newaxis],  # the same for all classes
    scores,
    max_output_size_per_class=at_most,
    max_total_size=at_most,
    iou_threshold=overlap,
    score_threshold=least_score,
  )
  return boxes, scores, classes + 1, counts
