"""Fails unless `tfecho` is an installed package rather than a checkout."""

import pathlib
import sysconfig

import tfecho

installed = pathlib.Path(sysconfig.get_path("purelib")) / "tfecho"
found = pathlib.Path(tfecho.__file__).parent
if not found.samefile(installed):
  raise SystemExit(f"tfecho comes from {found}, expected {installed}")
print(f"tfecho {tfecho.__version__} comes from site-packages")
