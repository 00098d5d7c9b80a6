"""Of the backups in a folder, one is complete and counts."""

import tensorflow as tf

from tfecho.training.callbacks.backup_folder import BackupFolder, Position


def test_the_newest_backup_counts(tmp_path):
  folder = BackupFolder(tmp_path)
  value = tf.Variable(0)
  checkpoint = tf.train.Checkpoint(value=value)
  assert folder.position() is None
  for step in range(12):  # beyond where names sort by themselves
    value.assign(step)
    folder.write(checkpoint, Position(1, step))
    assert folder.position() == Position(1, step)
  value.assign(-1)
  folder.restore(checkpoint)
  assert int(value) == 11
  folder.clear()
  assert folder.position() is None


def test_what_somebody_else_put_there_stays(tmp_path):
  (tmp_path / "backup-of-my-thesis").mkdir()
  folder = BackupFolder(tmp_path)
  folder.write(tf.train.Checkpoint(), Position())
  folder.clear()
  assert [path.name for path in tmp_path.iterdir()] == ["backup-of-my-thesis"]
