"""Numbers as people read them."""

import pytest

from tfecho.advice.units import ms, num_bytes, number


# bytes, as people read them
@pytest.mark.parametrize(
  ("count", "text"),
  [
    (0, "0 bytes"),
    (999, "999 bytes"),
    (999.6, "1 kB"),
    (1000, "1 kB"),
    (999_499, "999 kB"),
    (999_500, "1 MB"),
    (1_530_000, "1.53 MB"),
    (2.5e9, "2.5 GB"),
    (4e12, "4,000 GB"),
  ],
)
def test_sizes_are_told_in_three_digits(count, text):
  assert num_bytes(count) == text


# value, digits, as people read it
@pytest.mark.parametrize(
  ("value", "digits", "text"),
  [
    (0, 2, "0"),
    (1e-9, 2, "0"),
    (0.00011, 2, "0.0001"),
    (0.0123, 2, "0.012"),
    (9.96, 2, "10"),
    (99.4, 2, "99"),
    (99.6, 2, "100"),
    (125, 2, "125"),
    (125, 3, "125"),
    (999.6, 3, "1,000"),
    (1_234_567.8, 3, "1,234,568"),
  ],
)
def test_numbers_have_no_exponent(value, digits, text):
  assert number(value, digits) == text


def test_times_are_told_in_milliseconds():
  assert [ms(x) for x in (0.00012, 0.0123, 1.23)] == ["0.12", "12.3", "1,230"]
