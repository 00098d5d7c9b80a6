"""What tells two libraries apart, and what does not."""

import dataclasses

import pytest
import tensorflow as tf

from tfecho.native import target


@pytest.mark.parametrize(
  "field", [field.name for field in dataclasses.fields(target.Target)]
)
def test_another_value_of_any_field_gives_another_key(field):
  here = target.current()
  other = dataclasses.replace(here, **{field: getattr(here, field) + "x"})
  assert other.key != here.key


def test_the_key_is_the_same_every_time():
  assert target.current().key == target.current().key


def test_it_does_not_matter_where_tensorflow_is_installed(monkeypatch):
  here = target.current()
  monkeypatch.setattr(tf.sysconfig, "get_lib", lambda: '/a b/"c"/tf')
  monkeypatch.setattr(tf.sysconfig, "get_include", lambda: '/a b/"c"/tf/inc')
  flags = tf.sysconfig.get_compile_flags()
  moved = ['-I/a b/"c"/tf/inc', *flags[1:]]
  monkeypatch.setattr(tf.sysconfig, "get_compile_flags", lambda: moved)
  links = ['-L/a b/"c"/tf', *tf.sysconfig.get_link_flags()[1:]]
  monkeypatch.setattr(tf.sysconfig, "get_link_flags", lambda: links)
  assert target.current() == here


def test_a_flag_of_tensorflow_matters(monkeypatch):
  here = target.current()
  flags = [*tf.sysconfig.get_compile_flags(), "-DNEW"]
  monkeypatch.setattr(tf.sysconfig, "get_compile_flags", lambda: flags)
  assert target.current().key != here.key


def test_headers_of_tensorflow_are_included_as_system_headers():
  flags = target.compile_flags()
  assert not [flag for flag in flags if flag.startswith("-I")]
  where = flags.index("-isystem")
  assert flags[where + 1] == tf.sysconfig.get_include()


@pytest.mark.parametrize(
  # reported by TensorFlow, standards among the flags
  "reported, expected",
  [
    ([], ["-std=c++17"]),
    (["--std=c++17"], ["--std=c++17"]),
    (["-std=c++20"], ["-std=c++20"]),
  ],
)
def test_the_standard_is_the_one_of_tensorflow_else_17(
  monkeypatch, reported, expected
):
  monkeypatch.setattr(tf.sysconfig, "get_compile_flags", lambda: reported)
  flags = target.compile_flags()
  assert [flag for flag in flags if "std=" in flag] == expected


def test_the_hash_of_the_sources_covers_names_and_contents(tmp_path):
  def hash_of(**files):
    for old in tmp_path.iterdir():
      old.unlink()
    for name, content in files.items():
      (tmp_path / name.replace("_", ".")).write_text(content)
    return target.hash_of(tmp_path)

  hashes = [
    hash_of(),
    hash_of(a_cc="1"),
    hash_of(a_cc="2"),
    hash_of(b_cc="1"),
    hash_of(a_h="1"),
    hash_of(a_cc="1", b_h=""),
    hash_of(a_cc="", b_h="1"),
  ]
  assert len(set(hashes)) == len(hashes)
  assert hash_of(a_cc="1", notes_txt="2") == hash_of(a_cc="1")


def test_the_sources_are_part_of_the_installation():
  assert target.source_files(target.SOURCES)
