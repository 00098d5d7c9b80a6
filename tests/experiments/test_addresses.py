import hashlib

import pytest
from datasets import needs_addresses

from experiments.data import addresses

pytestmark = needs_addresses
CORPORA = [addresses.spoken, addresses.written]


@pytest.mark.parametrize("corpus", CORPORA)
def test_nothing_for_validation_is_for_training(corpus):
  train, validation = corpus()
  assert len(train) > 25_000 and len(validation) > 2_500
  # But for what everyone says, as "Thank you.", and one quotation.
  shared = set(train) & set(validation)
  assert sum(text in shared for text in validation) < 0.015 * len(validation)
  assert sum(len(text.split()) > 8 for text in shared) <= 1


def test_spoken_texts_are_sentences():
  train, _ = addresses.spoken()
  assert "We do not purpose or desire to dictate to them in any way." in train
  assert not any(text.endswith(("Mr.", "Mrs.")) for text in train)
  starts = [text.lstrip("\"'([")[0].isupper() for text in train]
  assert sum(starts) > 0.98 * len(train)


def test_written_texts_are_passages_of_36_words():
  train, validation = addresses.written()
  assert {len(text.split()) for text in train + validation} == {36}


@pytest.mark.parametrize(
  "corpus, digest",
  [
    (addresses.spoken, "fc079748d6070886"),
    (addresses.written, "d16b95f1496116c6"),
  ],
)
def test_the_texts_are_the_same_for_ever(corpus, digest):
  # Golden: recorded results compare only while the texts stay.
  text = "\n\n".join("\n".join(part) for part in corpus())
  assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest
