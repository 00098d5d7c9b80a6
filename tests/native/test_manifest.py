"""Damaged, foreign and unsafe libraries are found before they are loaded."""

import contextlib
import dataclasses
import json
import os

import pytest

from tfecho.native import (
  NativeUnavailableError,
  building,
  cache,
  manifest,
  target,
)
from tfecho.native.errors import NeedsBuildError


@pytest.fixture
def library(fake_compiler):
  """The path of a library in the cache, whole and verified."""
  file = building.find_or_build()
  os.close(file.descriptor)
  return file.path


def rewrite(path, **changes):
  """Changes fields of the manifest of a library; None removes one."""
  beside = manifest.path_for(path)
  fields = {**json.loads(beside.read_bytes()), **changes}
  kept = {name: value for name, value in fields.items() if value is not None}
  beside.write_text(json.dumps(kept))


def test_a_manifest_says_what_the_library_is(library):
  fields = json.loads(manifest.path_for(library).read_bytes())
  assert fields == {
    "size": library.stat().st_size,
    "sha256": manifest.Manifest.describe(
      library.read_bytes(), "", target.current()
    ).sha256,
    "compiler": "fake compiler 1.0",
    "target": dataclasses.asdict(target.current()),
  }


def test_the_descriptor_is_of_the_verified_file(library):
  file = cache.find()
  assert os.path.samestat(os.fstat(file.descriptor), library.stat())
  os.close(file.descriptor)


@pytest.mark.parametrize(
  "damage",
  [
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: content + b"\0",
    lambda content: bytes(len(content)),
    lambda content: content[:-1] + bytes([content[-1] ^ 1]),
  ],
  ids=["empty", "half", "longer", "zero-filled", "one bit"],
)
def test_a_library_whose_content_changed_is_refused(library, damage):
  library.write_bytes(damage(library.read_bytes()))
  with pytest.raises(NeedsBuildError, match=f"{library.name} is damaged"):
    cache.find()


@pytest.mark.parametrize(
  "text",
  [b"", b"{", b"\xff\xfe", b"null", b"[1, 2]", b"{}", b'{"target": 3}'],
)
def test_a_manifest_that_is_none_is_refused(library, text):
  manifest.path_for(library).write_bytes(text)
  with pytest.raises(NeedsBuildError, match=r"[.]json is damaged"):
    cache.find()


@pytest.mark.parametrize(
  "changes",
  [
    {"size": None},
    {"sha256": None},
    {"target": None},
    {"target": {}},
    {"extra": 1},
    {"size": "17"},
    {"sha256": 17},
  ],
  ids=str,
)
def test_a_manifest_with_other_fields_is_refused(library, changes):
  rewrite(library, **changes)
  with pytest.raises(NeedsBuildError, match="damaged"):
    cache.find()


@pytest.mark.parametrize("gone", ["library", "manifest", "folder"])
def test_what_is_not_there_needs_a_build(library, gone):
  if gone in ("library", "folder"):
    library.unlink()
  if gone in ("manifest", "folder"):
    manifest.path_for(library).unlink()
  if gone == "folder":
    cache.clean()
    library.parent.rmdir()
  with pytest.raises(NeedsBuildError, match="not there"):
    cache.find()


@pytest.mark.parametrize(
  # field of the target, how the error calls it
  "field, title",
  [
    ("tensorflow", "version of TensorFlow"),
    ("git_version", "commit of TensorFlow"),
    ("compile_flags", "set of compiler flags"),
    ("link_flags", "set of linker flags"),
    ("machine", "kind of machine"),
    ("sources", "version of tfecho's C[+][+] sources"),
  ],
)
def test_a_library_for_another_target_is_refused_and_says_which(
  library, field, title
):
  here = target.current()
  wanted = dataclasses.replace(here, **{field: "another"})
  found = getattr(here, field)
  with pytest.raises(NeedsBuildError, match=f"another {title}: ") as caught:
    manifest.verify(library, wanted)
  assert f"{found}, here another" in str(caught.value)


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777], ids=oct)
def test_a_folder_that_others_may_write_is_refused(library, mode):
  library.parent.chmod(mode)
  refusal = f"refused: {library.parent} can be written by others"
  with pytest.raises(NativeUnavailableError, match=refusal) as caught:
    cache.find()
  assert f"mode {mode:04o}" in str(caught.value)
  assert not isinstance(caught.value, NeedsBuildError)


@pytest.mark.parametrize("mode", [0o664, 0o646], ids=oct)
@pytest.mark.parametrize("of", ["library", "manifest"])
def test_a_file_that_others_may_write_is_refused(library, of, mode):
  path = library if of == "library" else manifest.path_for(library)
  path.chmod(mode)
  refusal = f"refused: {path} can be written by others"
  with pytest.raises(NativeUnavailableError, match=refusal) as caught:
    cache.find()
  assert not isinstance(caught.value, NeedsBuildError)


@pytest.mark.parametrize("of", ["folder", "library", "manifest"])
def test_what_belongs_to_another_user_is_refused(library, of, nobody):
  path = {
    "folder": library.parent,
    "library": library,
    "manifest": manifest.path_for(library),
  }[of]
  os.chown(path, nobody, nobody)
  with pytest.raises(
    NativeUnavailableError, match=f"refused: {path} belongs to user {nobody}"
  ) as caught:
    cache.find()
  assert not isinstance(caught.value, NeedsBuildError)


def test_a_link_is_as_good_as_the_file_that_it_leads_to(
  library, tmp_path, nobody
):
  elsewhere = tmp_path / "elsewhere"
  library.rename(elsewhere)
  library.symlink_to(elsewhere)
  os.close(cache.find().descriptor)
  os.chown(elsewhere, nobody, nobody)
  with pytest.raises(NativeUnavailableError, match="belongs to user"):
    cache.find()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_without_waiting_for_it(library, make):
  library.unlink()
  make(library)
  library.chmod(0o700)
  with pytest.raises(NativeUnavailableError, match="not a regular file"):
    cache.find()


def test_a_library_that_cant_be_read_is_refused(
  cache_dir, fake_compiler, start, nobody
):
  os.close(building.find_or_build().descriptor)
  (library,) = cache_dir.glob("*.so")
  library.chmod(0o600)
  code = """
try: cache.find()
except native.NativeUnavailableError as error: print(error)
"""
  out = start(code, user=nobody).finish()
  assert out == f"{library} can't be read: Permission denied"


def test_refusals_close_what_they_opened(library):
  library.write_bytes(b"")
  with pytest.raises(NeedsBuildError):
    cache.find()
  library.chmod(0o666)
  with pytest.raises(NativeUnavailableError):
    cache.find()
  assert open_below(library.parent) == []


def test_what_is_open_would_be_seen(library):
  file = cache.find()
  assert open_below(library.parent) == [str(library)]
  os.close(file.descriptor)


def open_below(folder):
  """What this process has open there; elsewhere, others come and go."""
  found = []
  for descriptor in os.listdir("/proc/self/fd"):
    with contextlib.suppress(FileNotFoundError):
      found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
  return [path for path in found if path.startswith(f"{folder}/")]
