"""What a library is built for, and from: its identity, and key in the cache.

A library fits one build of TensorFlow, one kind of machine and one set of
sources. Where TensorFlow is installed and which compiler was used are not part
of that: an image without a compiler can use what another image built.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import platform
from typing import Any

import tensorflow as tf

SOURCES = pathlib.Path(__file__).parent / "src"

# NDEBUG as in the published wheels: without it, assertions inside inline
# functions of TensorFlow and Abseil disagree with the code they link to.
OWN_FLAGS = ("-O2", "-DNDEBUG", "-fPIC", "-Wall", "-Wextra")
STANDARD = "-std=c++17"


def _field(title: str) -> Any:
  return dataclasses.field(metadata={"title": title})


@dataclasses.dataclass(frozen=True)
class Target:
  """The identity of a library, in plain strings so that JSON can hold it.

  Attributes:
    tensorflow: version of TensorFlow, such as `"2.21.0"`.
    git_version: its commit, which tells nightly builds apart.
    compile_flags: with the folders of TensorFlow replaced by names.
    link_flags: the same.
    machine: architecture, such as `"x86_64"`.
    sources: SHA-256 over names and contents of the C++ files.
  """

  tensorflow: str = _field("version of TensorFlow")
  git_version: str = _field("commit of TensorFlow")
  compile_flags: str = _field("set of compiler flags")
  link_flags: str = _field("set of linker flags")
  machine: str = _field("kind of machine")
  sources: str = _field("version of tfecho's C++ sources")

  @property
  def key(self) -> str:
    """A short digest that differs wherever two targets differ."""
    text = json.dumps(dataclasses.asdict(self), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def current() -> Target:
  """Returns the target for this machine, this TensorFlow, these sources."""
  return Target(
    tensorflow=tf.version.VERSION,
    git_version=tf.version.GIT_VERSION,
    compile_flags=_portable(compile_flags()),
    link_flags=_portable(link_flags()),
    machine=platform.machine(),
    sources=hash_of(SOURCES),
  )


def compile_flags() -> list[str]:
  """Returns the arguments that compile one source file for TensorFlow."""
  flags = [*OWN_FLAGS]
  for flag in tf.sysconfig.get_compile_flags():
    # As system headers, TensorFlow's own warnings stay silent.
    flags += ["-isystem", flag[2:]] if flag.startswith("-I") else [flag]
  if not any(flag.lstrip("-").startswith("std=") for flag in flags):
    flags.append(STANDARD)
  return flags


def link_flags() -> list[str]:
  """Returns the arguments that link a library against TensorFlow."""
  return list(tf.sysconfig.get_link_flags())


def source_files(sources: pathlib.Path) -> list[pathlib.Path]:
  """Returns the `.cc` files in a folder: each is one translation unit."""
  return sorted(sources.glob("*.cc"))


def hash_of(sources: pathlib.Path) -> str:
  """Returns the SHA-256 of the `.cc` and `.h` files in a folder."""
  digest = hashlib.sha256()
  for path in sorted([*sources.glob("*.cc"), *sources.glob("*.h")]):
    content = path.read_bytes()
    digest.update(f"{path.name}\0{len(content)}\0".encode())
    digest.update(content)
  return digest.hexdigest()


def _portable(flags: list[str]) -> str:
  text = json.dumps(flags)
  for name, folder in (
    ("{include}", tf.sysconfig.get_include()),
    ("{lib}", tf.sysconfig.get_lib()),
  ):
    text = text.replace(json.dumps(folder)[1:-1], name)
  return text
