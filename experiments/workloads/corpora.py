"""Text for the language models: where it comes from, and its vocabulary."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import tensorflow as tf

from experiments.workloads.tokens import Vocabulary
from tfecho.native import cache


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


def _spread(texts, count):
  return [texts[i * len(texts) // count] for i in range(count)]
