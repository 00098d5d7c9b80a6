"""The suite on decoding; what it measures is tested in test_images."""

import pytest
import tensorflow as tf

from experiments.benchmark import decode, pillow_crop

CONTENTS = tf.io.encode_jpeg(tf.zeros([48, 64, 3], tf.uint8)).numpy()
WINDOWS = [(0, 0, 32, 32), (16, 8, 64, 48)]


def start(path=None):
  return pillow_crop.start(CONTENTS, WINDOWS, (8, 8), at_a_time=3, path=path)


def test_pillow_crops_in_a_process_of_its_own():
  probe = start()
  assert probe() > 0 and probe() > 0


def test_it_is_imported_from_the_folder_that_was_named(tmp_path):
  (tmp_path / "PIL.py").write_text("raise SystemExit(7)")
  with pytest.raises(RuntimeError, match="ended with exit status 7"):
    start(tmp_path)


@pytest.mark.parametrize(
  ("folder", "expected"), [("", ["Pillow"]), ("x", ["Pillow", "Pillow-SIMD"])]
)
def test_pillow_simd_takes_part_where_there_is_one(
  folder, expected, monkeypatch
):
  monkeypatch.setenv("PILLOW_SIMD", folder)
  for case in decode.cases():
    assert list(case.contenders)[2:] == expected
    assert [bound.other for bound in case.bounds[1:]] == expected
