"""Text for the language models: where it comes from, and its vocabulary."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import tensorflow as tf

from experiments.data import prepared
from experiments.workloads.tokens import Vocabulary
from tfecho.native import cache

# So many texts tell what tokens there are; more would take hours.
_TEXTS_FOR_VOCABULARY = 1_000_000


@dataclasses.dataclass(frozen=True)
class Corpus:
  """Text to learn from.

  Attributes:
    keys: Dataset of what `read` takes, one for each text, of known length.
    read: From a key to a text, a scalar string.
    validation: Dataset of other texts.
    vocabulary: `Vocabulary` that was learned from these texts, or will be.
  """

  keys: tf.data.Dataset
  read: Callable
  validation: tf.data.Dataset
  vocabulary: Vocabulary


def in_memory(name, texts, validation, *, validation_texts, vocabulary):
  """Returns a `Corpus` of texts that a package ships.

  Args:
    name: Of the texts, with their version: the vocabulary is kept by it, in the
      folder where `tfecho` keeps files.
    texts: Sequence of str.
    validation: Sequence of other str.
    validation_texts: How many of these are taken, evenly spread.
    vocabulary: Number of tokens.
  """
  file = cache.folder() / "vocabularies" / f"{name}-{vocabulary}.model"
  return Corpus(
    keys=tf.data.Dataset.range(len(texts)),
    read=functools.partial(tf.gather, tf.constant(texts)),
    validation=tf.data.Dataset.from_tensor_slices(
      _spread(validation, validation_texts)
    ),
    vocabulary=Vocabulary(file, vocabulary, lambda: texts),
  )


def on_disk(name, *, validation_split, validation_texts, vocabulary):
  """Returns a `Corpus` of texts that TensorFlow Datasets has prepared.

  Args:
    name: Name of the data set. The vocabulary is kept beside it, see
      `prepared.beside`.
    validation_split: Name of its split for validation.
    validation_texts: How many texts of that are taken, the first ones.
    vocabulary: Number of tokens.

  Raises:
    ValueError: If the data set is not on this machine.
  """
  records = prepared.load(name, "train", ["text"])
  validation = prepared.load(name, validation_split, ["text"])
  file = f"{name.replace('/', '-')}-{vocabulary}.model"
  return Corpus(
    keys=records,
    read=_text,
    validation=validation.take(validation_texts).map(_text),
    vocabulary=Vocabulary(
      prepared.beside("vocabularies") / file,
      vocabulary,
      lambda: _strings(records.take(_TEXTS_FOR_VOCABULARY).map(_text)),
    ),
  )


def _spread(texts, count):
  return [texts[i * len(texts) // count] for i in range(count)]


def _text(record):
  return record["text"]


def _strings(texts):
  for text in texts.as_numpy_iterator():
    yield text.decode(errors="replace")
