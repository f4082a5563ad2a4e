#!/bin/sh
# Sets up an environment of its own and finds the faces in a photo. Arguments: other photos.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
environment=$root/.venv-demo
echo "installing trtpatch into $environment ..." >&2
"${PYTHON:-python3}" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check -e "$root[cpu]"
exec "$environment/bin/python" "$root/examples/demo.py" "$@"
