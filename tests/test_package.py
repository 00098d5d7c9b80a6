"""The package as a user meets it: the wheel, the names, the import, the docs.

What is asked about an import is asked in a new process, since this one has
imported everything long ago.
"""

import doctest
import importlib.util
import json
import os
import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile

import keras
import pytest
import tensorflow as tf

import tfecho

CHECKOUT = pathlib.Path(__file__).parents[1]
EVERYTHING_A_WHEEL_IS_MADE_FROM = (
  "pyproject.toml",
  "README.md",
  "LICENSE",
  "tfecho",
  "experiments",
)
PUBLIC_NAMES = [
  "Advice",
  "Pipeline",
  "Stats",
  "advise",
  "echo",
  "echo_on_stall",
  "factor_variable",
  "images",
  "monitor",
  "native",
  "remote",
  "shuffle_after_echo",
]

needs_checkout = pytest.mark.skipif(
  not (CHECKOUT / "tfecho").exists(),
  reason="these tests run away from the checkout, on an installed wheel",
)


def python(code, **environment):
  """What `code` prints, parsed from JSON, run in a new Python process."""
  result = subprocess.run(
    [sys.executable, "-c", code],
    env={**os.environ, **environment},
    stdout=subprocess.PIPE,
    check=True,
  )
  return json.loads(result.stdout)


# --- The wheel --------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
  """The names of the files in a wheel that is built from a clean copy.

  A copy, because setuptools puts into the wheel whatever an earlier build left
  behind in `build/`.
  """
  source = tmp_path_factory.mktemp("source")
  for name in EVERYTHING_A_WHEEL_IS_MADE_FROM:
    if (CHECKOUT / name).is_dir():
      # Where other processes are just compiling what they import.
      ignored = shutil.ignore_patterns("__pycache__")
      shutil.copytree(CHECKOUT / name, source / name, ignore=ignored)
    else:
      shutil.copy(CHECKOUT / name, source / name)
  built = tmp_path_factory.mktemp("wheel")
  offline = ["--no-deps", "--no-build-isolation", "--no-index"]
  subprocess.run(
    [sys.executable, "-m", "pip", "wheel", *offline, "-w", built, source],
    check=True,
    capture_output=True,
  )
  (path,) = built.glob("*.whl")
  with zipfile.ZipFile(path) as archive:
    return set(archive.namelist())


@needs_checkout
def test_the_wheel_holds_every_file_of_the_package(wheel):
  package = CHECKOUT / "tfecho"
  files = {
    path.relative_to(CHECKOUT).as_posix()
    for path in package.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
  }
  assert {"tfecho/__init__.py", "tfecho/py.typed"} < files
  assert any(name.startswith("tfecho/native/src/") for name in files)
  assert files <= wheel


@needs_checkout
def test_the_wheel_claims_no_top_level_name_but_tfecho(wheel):
  top_level = {name.split("/")[0] for name in wheel}
  info = f"tfecho-{tfecho.__version__}.dist-info"
  assert top_level == {"tfecho", info}
  assert f"{info}/licenses/LICENSE" in wheel


# --- The names --------------------------------------------------------------


def test_the_public_names_are_these_and_no_others():
  assert sorted(tfecho.__all__) == PUBLIC_NAMES
  assert all(hasattr(tfecho, name) for name in PUBLIC_NAMES)


def test_nothing_else_looks_public_in_the_package():
  visible = {name for name in vars(tfecho) if not name.startswith("_")}
  submodules = {module.name for module in pkgutil.iter_modules(tfecho.__path__)}
  assert visible - submodules <= set(PUBLIC_NAMES)


# --- The import -------------------------------------------------------------

NEW_MODULES = """
import json, sys
import tensorflow
before = set(sys.modules)
import tfecho
print(json.dumps(sorted(set(sys.modules) - before)))
"""

STARTED_PROCESSES = """
import json, sys
import tensorflow
started = []
WATCHED = {"subprocess.Popen", "os.system", "os.exec", "os.fork",
           "os.posix_spawn"}
def watch(event, arguments):
  if event in WATCHED:
    started.append(repr((event, arguments)))
sys.addaudithook(watch)
import tfecho
print(json.dumps(started))
"""


@pytest.mark.skipif(
  sys.version_info < (3, 10), reason="3.9 cannot name its standard library"
)
def test_the_import_loads_nothing_beyond_tensorflow_but_the_package():
  """So it is as fast as importing TensorFlow, which a clock cannot show."""
  modules = python(NEW_MODULES)
  foreign = {
    name
    for name in modules
    if name.split(".")[0] not in {"tfecho", *sys.stdlib_module_names}
  }
  assert "tfecho" in modules
  assert foreign == set()


def test_the_import_leaves_the_training_part_alone():
  modules = python(NEW_MODULES)
  assert not [name for name in modules if name.startswith("tfecho.training")]


def test_the_import_compiles_nothing(tmp_path):
  cache = tmp_path / "cache"
  started = python(STARTED_PROCESSES, TFECHO_CACHE_DIR=str(cache))
  assert started == []
  assert not cache.exists()


# --- The documentation ------------------------------------------------------


def modules():
  """Every module of the package that can be imported here.

  Not the scripts, which run when they are imported.
  """
  found = pkgutil.walk_packages(tfecho.__path__, "tfecho.")
  names = {module.name for module in found if "__main__" not in module.name}
  if not importlib.util.find_spec("tensorflow_addons"):
    names.remove("tfecho.training.addons")
  return ["tfecho", *sorted(names)]


def docstrings(owner, name):
  """Those of a module or a class and of all that is defined in it."""
  found = doctest.DocTestFinder(exclude_empty=False).find(owner, name)
  return [test.docstring for test in found if test.docstring]


def run_python_blocks(text, names):
  """Runs what stands between ```python and ```, all of it in one namespace."""
  for block in re.findall(r"^ *```python\n(.*?)^ *```", text, re.M | re.S):
    exec(compile(textwrap.dedent(block), "<example>", "exec"), names)


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_the_docstrings_run(name, native_ops):
  module = importlib.import_module(name)
  given = {"tf": tf, "tfecho": tfecho}
  options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
  result = doctest.testmod(module, extraglobs=given, optionflags=options)
  assert result.failed == 0
  for docstring in docstrings(module, name):
    run_python_blocks(docstring, dict(given))


@pytest.mark.parametrize("name", sorted(set(PUBLIC_NAMES) - {"native"}))
def test_every_public_name_has_an_example(name):
  text = "\n".join(docstrings(getattr(tfecho, name), name))
  assert ">>> " in text or "```python\n" in text


@pytest.fixture
def names_of_the_reader(tmp_path):
  """What the README leaves to its reader: files, functions and a model."""
  size = 4
  path = str(tmp_path / "image.png")
  tf.io.write_file(path, tf.io.encode_png(tf.zeros([size, size, 3], tf.uint8)))

  def decode(record):
    image = tf.io.decode_png(record, channels=3)
    return tf.ensure_shape(image, [size, size, 3]), tf.constant(0)

  def augment(image, label):
    return tf.cast(image, tf.float32) / 255.0, label

  def build_model():
    return keras.Sequential(
      [
        keras.Input((size, size, 3)),
        keras.layers.Flatten(),
        keras.layers.Dense(2, dtype="float32"),
      ]
    )

  model = build_model()
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile(optimizer="sgd", loss=loss)
  validation = tf.data.Dataset.from_tensors(decode(tf.io.read_file(path)))
  return {
    "files": [path] * 128,
    "decode": decode,
    "augment": augment,
    "model": model,
    "build_model": build_model,
    "loss": loss,
    "validation": validation.map(augment).batch(1),
  }


@needs_checkout
def test_the_examples_in_the_readme_run(
  names_of_the_reader, native_ops, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)  # One of them makes backups.
  text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
  assert "```python\n" in text
  run_python_blocks(text, names_of_the_reader)


@needs_checkout
def test_every_relative_link_leads_somewhere():
  documents = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("experiments/**/*.md")]
  assert CHECKOUT / "README.md" in documents
  broken = [
    (document.name, target)
    for document in documents
    for target in relative_links(document.read_text(encoding="utf-8"))
    if not (document.parent / target).exists()
  ]
  assert broken == []


def relative_links(text):
  """The files that a document links to or shows, without their anchors."""
  targets = re.findall(r"\]\(([^)#\s]+)", text)
  return [target for target in targets if "://" not in target]
