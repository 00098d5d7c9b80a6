"""COCO's mean average precision of a detector.

Source: T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", arXiv
1405.0312; the evaluation is that of the authors' package, `pycocotools`.
"""

import contextlib
import io

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from experiments.workloads.ssd import objects as columns
from experiments.workloads.ssd.detections import detections


class MeanAveragePrecision:
  """Average precision, over classes and over overlaps from 0.5 to 0.95.

  It has the methods of a Keras metric, but for use outside of graphs:

  ```python
  metric = MeanAveragePrecision(defaults, classes=80)
  metric.update_state(objects, model.predict_on_batch(images))
  metric.result()  # from 0 to 1
  ```

  Images are evaluated at the height and width of 1 that their boxes are given
  for. Scaling an axis doesn't change how much boxes overlap, so this is the
  same as at the size that they were taken with.
  """

  def __init__(self, defaults, *, classes):
    """Starts with no images.

    Args:
      defaults: The default boxes, of shape [boxes, 4].
      classes: Number of classes, without the background.
    """
    self._defaults = defaults
    self._classes = classes
    self.reset_state()

  def reset_state(self):
    """Forgets all images."""
    self._images = 0
    self._truth = []
    self._found = [np.zeros([0, 7])]

  def update_state(self, objects, outputs):
    """Adds a batch.

    Args:
      objects: What is in the images, as packed by `objects.pack`, of shape
        [batch, rows, columns].
      outputs: Those of `network.detector`, of shape [batch, boxes, 5 +
        classes].
    """
    found = [x.numpy() for x in detections(outputs, self._defaults)]
    for rows, boxes, scores, classes, count in zip(np.asarray(objects), *found):
      self._images += 1
      self._add_truth(rows[columns.classes(rows) > 0])
      rows = _extents(boxes), scores[:, np.newaxis], classes[:, np.newaxis]
      numbers = np.full([len(boxes), 1], self._images)
      self._found.append(np.concatenate([numbers, *rows], axis=1)[:count])

  def result(self):
    """Returns the precision of all images so far, 0 if there are none."""
    found = np.concatenate(self._found)
    if not len(found) or not self._truth:
      return 0.0
    with contextlib.redirect_stdout(io.StringIO()):  # it prints as it goes
      truth = COCO()
      truth.dataset = self._dataset()
      truth.createIndex()
      evaluation = COCOeval(truth, truth.loadRes(found), "bbox")
      evaluation.evaluate()
      evaluation.accumulate()
      evaluation.summarize()
    return max(float(evaluation.stats[0]), 0.0)  # -1 if there are only crowds

  def _add_truth(self, rows):
    for row, box in zip(rows, _extents(columns.boxes(rows))):
      self._truth.append(
        {
          "id": len(self._truth) + 1,  # 0 would count as "not found"
          "image_id": self._images,
          "category_id": int(columns.classes(row)),
          "bbox": box.tolist(),
          "area": float(box[2] * box[3]),
          "iscrowd": int(columns.crowd(row)),
        }
      )

  def _dataset(self):
    return {
      "info": {},
      "images": [{"id": number + 1} for number in range(self._images)],
      "categories": [{"id": number + 1} for number in range(self._classes)],
      "annotations": self._truth,
    }


def _extents(boxes):
  """Returns left, top, width and height, as COCO has them."""
  top, left, bottom, right = boxes.T.astype(np.float64)
  return np.stack([left, top, right - left, bottom - top], axis=1)
