"""Puts the training examples of a workload into an object store.

  python -m experiments.put --store=s3://bucket/digits
  python -m experiments.run --store=s3://bucket/digits

One file for each, as `tfecho.remote` and tf.data read them.
"""

from absl import flags, logging

from experiments import command_line, workload_flags
from experiments.store import objects, url_flag

flags.adopt_module_key_flags(workload_flags)
flags.adopt_module_key_flags(url_flag)
flags.mark_flag_as_required("store")


def main():
  workload_flags.use_data_dir()
  with command_line.refusing_in_one_line():
    count = objects.put(workload_flags.workload(), url_flag.STORE.value)
  logging.info("%s has %d examples", url_flag.STORE.value, count)


if __name__ == "__main__":
  command_line.run(main)
