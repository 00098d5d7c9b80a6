"""How scripts start, and what they say when they are interrupted."""

import signal

import forking
import pytest

SCRIPT = """
from experiments import command_line

def main():
  raise KeyboardInterrupt

command_line.run(main, goes_on=lambda: {goes_on})
"""


@pytest.mark.parametrize(
  "goes_on, said",
  [
    (True, "interrupted: the same command goes on from here"),
    (False, "interrupted"),
  ],
)
def test_who_can_not_go_on_does_not_say_so(goes_on, said):
  done = forking.run("-c", SCRIPT.format(goes_on=goes_on))
  assert done.returncode == 128 + signal.SIGINT
  assert said in done.stderr.splitlines()
