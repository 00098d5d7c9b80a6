import pathlib

import pytest

from experiments import files


def test_a_file_is_written_and_replaced(tmp_path):
  path = tmp_path / "file.json"
  for text in ("one", "ü"):
    files.write_whole(path, text)
    assert path.read_text(encoding="utf-8") == text
  assert list(tmp_path.iterdir()) == [path]


def test_what_is_there_stays_until_all_of_the_other_is(tmp_path, monkeypatch):
  path = tmp_path / "file.json"
  files.write_whole(path, "one")

  def killed(self, target):
    raise KeyboardInterrupt

  monkeypatch.setattr(pathlib.Path, "replace", killed)
  with pytest.raises(KeyboardInterrupt):
    files.write_whole(path, "two")
  assert path.read_text() == "one"
