#!/bin/sh
# Sets up an environment of its own, then runs the static checks and the tests. Arguments: pytest's.
set -eu
cd "$(dirname "$0")/.."
echo "installing trtpatch and the tools into $PWD/.venv-tests ..." >&2
"${PYTHON:-python3}" -m venv .venv-tests
python=.venv-tests/bin/python
$python -m pip install --quiet --disable-pip-version-check -e '.[cpu,dev]'
$python -m ruff check .
$python -m ruff format --check .
$python -m mypy
exec $python -m pytest -n auto --dist worksteal "$@"
