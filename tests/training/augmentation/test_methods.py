"""What is drawn, and how often. Statistics: 4,000 images, 5 standard errors."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tfecho.training.augmentation import draws, methods, spaces
from tfecho.training.augmentation.policies import POLICIES

COUNT = 4_000
SEED = (1, 2)
TINY = tf.zeros([COUNT, 1, 1, 1])


@pytest.fixture
def applied(monkeypatch):
  """Notes what `Space.apply` is told, and does nothing."""
  calls = []

  def apply(self, images, index, fraction, sign):
    names = list(self.ranges)
    index, fraction, sign = (x.numpy() for x in (index, fraction, sign))
    calls.append(([names[i] for i in index], fraction, sign))
    return images

  monkeypatch.setattr(spaces.Space, "apply", apply)
  return calls


def assert_alike(values, expected):
  """All of `expected` occur, and equally often as far as can be told."""
  counts = collections.Counter(values)
  assert set(counts) == set(expected)
  share = 1 / len(set(expected))
  error = (share * (1 - share) / len(values)) ** 0.5
  for value, count in counts.items():
    assert abs(count / len(values) - share) < 5 * error, value


class TestTrivial:
  def test_one_operation_of_any_of_31_strengths_is_done(self, applied):
    methods.trivial()(TINY, SEED)
    [(names, fractions, signs)] = applied
    assert_alike(names, spaces.TRIVIAL.ranges)
    assert_alike(np.round(30 * fractions).tolist(), range(31))
    assert_alike(signs.tolist(), [-1, 1])

  def test_operation_strength_and_sign_do_not_depend_on_each_other(
    self, applied
  ):
    methods.trivial()(TINY, SEED)
    [(names, fractions, signs)] = applied
    index = np.unique(names, return_inverse=True)[1]
    correlations = np.corrcoef([index, fractions, signs])[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 5 / COUNT**0.5


class TestRand:
  @pytest.mark.parametrize("num_ops", [1, 2, 3])
  def test_so_many_operations_of_one_magnitude_are_done(self, applied, num_ops):
    methods.rand(magnitude=6, num_ops=num_ops)(TINY, SEED)
    assert len(applied) == num_ops
    for names, fractions, signs in applied:
      assert_alike(names, spaces.RAND.ranges)
      np.testing.assert_allclose(fractions, 0.6)
      assert_alike(signs.tolist(), [-1, 1])

  def test_the_defaults_are_two_of_magnitude_9(self, applied):
    methods.rand()(TINY, SEED)
    assert len(applied) == 2
    np.testing.assert_allclose(applied[0][1], 0.9)

  def test_the_second_does_not_depend_on_the_first(self, applied):
    methods.rand()(TINY, SEED)
    pairs = list(zip(applied[0][0], applied[1][0]))
    assert len(set(pairs)) == len(spaces.RAND) ** 2


class TestAuto:
  @pytest.mark.parametrize("policy", POLICIES)
  def test_parts_and_steps_are_done_as_often_as_the_policy_says(
    self, applied, policy
  ):
    methods.auto(policy=policy)(TINY, SEED)
    assert len(applied) == 2
    for step, (names, fractions, _) in enumerate(applied):
      expected = collections.Counter()
      for part in POLICIES[policy]:
        name, probability, level = part[step]
        expected[name, level] += probability / 25
      done = collections.Counter(
        (name, round(10 * float(fraction)))
        for name, fraction in zip(names, fractions)
        if name != "identity"
      )
      assert set(done) == {key for key, share in expected.items() if share}
      for key, count in done.items():
        error = (expected[key] * (1 - expected[key]) / COUNT) ** 0.5
        assert abs(count / COUNT - expected[key]) < 5 * error, key


class TestAugmix:
  def test_chains_have_one_to_three_operations_up_to_the_severity(
    self, applied
  ):
    methods.augmix(severity=3, width=2)(TINY, SEED)
    assert len(applied) == 2 * 3
    lengths = np.zeros(COUNT)
    for position, (names, fractions, signs) in enumerate(applied[:3]):
      is_done = np.array(names) != "identity"
      lengths += is_done
      if position == 0:
        assert is_done.all()
      operations = set(spaces.AUGMIX.ranges) - {"identity"}
      assert_alike([n for n in names if n != "identity"], operations)
      assert 0.01 <= fractions.min() < 0.02 and 0.29 < fractions.max() <= 0.3
      assert_alike(signs.tolist(), [-1, 1])
    assert_alike(lengths.tolist(), [1, 2, 3])

  def test_a_depth_that_is_given_is_that_of_all_chains(self, applied):
    methods.augmix(width=1, depth=2)(TINY, SEED)
    assert len(applied) == 2
    assert all("identity" not in names for names, _, _ in applied)

  def test_it_is_an_average_of_the_image_and_the_chains(self, applied):
    """With chains that do nothing, weights show: they add up to 1."""
    images = tf.fill([COUNT, 1, 1, 1], 100.0)
    mixed = methods.augmix()(images, SEED)
    np.testing.assert_allclose(mixed, images, rtol=1e-5)

  def test_the_image_keeps_a_share_from_beta(self, monkeypatch):
    monkeypatch.setattr(
      spaces.Space, "apply", lambda self, images, *_: tf.ones_like(images)
    )
    share = methods.augmix()(TINY, SEED).numpy().ravel()
    # Beta(1, 1) is uniform.
    assert abs(share.mean() - 1 / 2) < 5 * (1 / 12 / COUNT) ** 0.5
    assert abs(share.var() - 1 / 12) < 0.01


class TestCropFlip:
  def positions(self, padding, count=COUNT, size=9):
    """Where the only bright pixel, in the middle of an image, went to."""
    image = np.zeros([1, size, size, 1], np.uint8)
    image[0, size // 2, size // 2 + 1] = 255
    images = tf.repeat(tf.constant(image), count, axis=0)
    moved = methods.crop_flip(padding=padding)(images, SEED)
    return moved.numpy()

  def test_every_window_is_as_likely_as_every_other(self):
    moved = self.positions(padding=2)
    rows, columns = np.nonzero(moved[..., 0])[1:]
    assert len(rows) == COUNT
    assert_alike(rows.tolist(), range(2, 7))
    # One right of the middle, or one left of it where it was mirrored.
    ways = [
      5 * (column - 5 in range(-2, 3)) + 5 * (column - 3 in range(-2, 3))
      for column in range(9)
    ]
    shares = np.bincount(columns, minlength=9) / COUNT
    np.testing.assert_allclose(shares, np.array(ways) / sum(ways), atol=0.03)

  def test_what_is_outside_is_black(self):
    images = tf.fill([COUNT, 8, 8, 1], tf.constant(255, tf.uint8))
    moved = methods.crop_flip(padding=4)(images, SEED).numpy()
    shares = (moved == 255).mean(axis=(1, 2, 3))
    assert shares.min() == (4 / 8) ** 2 and shares.max() == 1

  @pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
  def test_a_single_image_is_cut_as_one_of_a_batch_is(self, noise, dtype):
    image = tf.cast(noise[:1], dtype)
    both = tf.concat([image, image], axis=0)
    for n in range(20):
      # The same draws, for a batch of two and for a single image.
      change = methods.crop_flip(padding=3)
      drawn = draws.uniform(image, (0, n), 3)
      with pytest.MonkeyPatch.context() as patch:
        twice = [tf.repeat(draw, 2) for draw in drawn]
        patch.setattr(draws, "uniform", lambda *_, twice=twice: twice)
        batch = change(both, (0, n))
      np.testing.assert_array_equal(change(image, (0, n))[0], batch[1])


class TestDraws:
  def test_an_index_never_is_too_large(self):
    below_one = np.nextafter(np.float32(1), np.float32(0))
    for count in (2, 14, 25, 31, 1_000_003):
      assert draws.index(tf.constant([below_one]), count)[0] == count - 1
      assert draws.index(tf.constant([0.0]), count)[0] == 0

  @pytest.mark.parametrize("alpha", [0.01, 0.2, 1.0, 5.0])
  def test_shares_are_from_beta(self, alpha):
    shares = draws.beta(TINY, SEED, alpha).numpy()
    variance = 1 / (4 * (2 * alpha + 1))
    assert np.isfinite(shares).all()
    assert abs(shares.mean() - 0.5) < 5 * (variance / COUNT) ** 0.5
    assert abs(shares.var() / variance - 1) < 0.1

  def test_weights_add_up_to_one_and_are_alike(self):
    weights = draws.dirichlet(TINY, SEED, 3, 1.0).numpy()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(weights.mean(axis=0), 1 / 3, atol=0.02)
