import collections

import numpy as np
import pytest
import tensorflow as tf

from experiments.workloads.tokens import (
  BEGIN,
  END,
  PADDING,
  UNKNOWN,
  Vocabulary,
)

TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"]
SIZE = 40


@pytest.fixture
def vocabulary(tmp_path):
  return Vocabulary(tmp_path / "folder" / "cats.model", SIZE, lambda: TEXTS)


def _tokens(example):
  """All tokens of an example, put together again."""
  inputs, labels = (tensor.numpy().tolist() for tensor in example)
  assert inputs[1:] == labels[:-1]  # one is the other one token later
  return [*inputs, labels[-1]]


@pytest.mark.parametrize("text", TEXTS)
def test_labels_are_the_inputs_one_token_later(vocabulary, text):
  inputs, labels = vocabulary.decoder(length=64)(text)
  assert inputs.dtype == labels.dtype == tf.int32
  assert inputs.shape == labels.shape == [64]
  tokens = _tokens((inputs, labels))
  end = tokens.index(END)
  assert tokens[0] == BEGIN
  assert min(tokens[1:end]) > END and max(tokens) < SIZE
  assert set(tokens[end + 1 :]) == {PADDING}


def test_a_text_that_is_too_long_is_cut_off(vocabulary):
  whole = _tokens(vocabulary.decoder(length=64)(TEXTS[0]))
  cut = _tokens(vocabulary.decoder(length=4)(TEXTS[0]))
  assert cut == whole[:5]


def test_what_is_in_no_token_is_unknown_and_an_empty_text_is_two_tokens(
  vocabulary,
):
  decode = vocabulary.decoder(length=8)
  assert UNKNOWN in _tokens(decode("the \N{SNOWMAN}"))
  assert _tokens(decode("")) == [BEGIN, END] + 7 * [PADDING]


def test_bytes_that_are_no_text_do_not_stop_a_pass(vocabulary):
  assert BEGIN in _tokens(vocabulary.decoder(length=8)(b"the \xff\xfe cat"))


def test_frequent_words_become_tokens_of_their_own(vocabulary):
  decode = vocabulary.decoder(length=8)
  lengths = {
    word: _tokens(decode(word)).index(END) - 1 for word in ("the", "mog")
  }
  assert lengths["the"] == 1 < lengths["mog"]


def test_it_is_learned_once_and_then_found(tmp_path):
  learned = collections.Counter()

  def texts():
    learned["times"] += 1
    return TEXTS

  path = tmp_path / "cats.model"
  examples = []
  for _ in range(2):
    vocabulary = Vocabulary(path, SIZE, texts)
    decode = vocabulary.decoder(length=16)
    examples += [_tokens(decode(TEXTS[0])), _tokens(decode(TEXTS[1]))]
  assert learned["times"] == 1
  assert examples[:2] == examples[2:]
  assert [file.name for file in tmp_path.iterdir()] == ["cats.model"]


def test_the_same_texts_make_the_same_vocabulary(tmp_path):
  files = [tmp_path / "one.model", tmp_path / "other.model"]
  for file in files:
    Vocabulary(file, SIZE, lambda: TEXTS).decoder(length=8)("cat")
  assert files[0].read_bytes() == files[1].read_bytes()


def test_learning_that_fails_leaves_no_file(tmp_path):
  vocabulary = Vocabulary(tmp_path / "cats.model", 4_000, lambda: TEXTS)
  with pytest.raises(Exception, match="[Vv]ocabulary size"):
    vocabulary.decoder(length=8)("cat")
  assert not list(tmp_path.iterdir())


def test_a_pipeline_that_tells_tokens_can_be_saved(vocabulary, tmp_path):
  dataset = tf.data.Dataset.from_tensor_slices(TEXTS)
  dataset = dataset.map(vocabulary.decoder(length=8))
  iterator = iter(dataset)
  checkpoint = tf.train.Checkpoint(iterator=iterator)
  next(iterator)
  path = checkpoint.write(str(tmp_path / "position"))
  expected = next(iterator)
  other = iter(dataset)
  tf.train.Checkpoint(iterator=other).read(path)
  np.testing.assert_array_equal(next(other), expected)
