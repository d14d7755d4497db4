# shellcheck shell=bash
# What the scripts here share; each begins with:  . "$(dirname "$0")/common.sh"
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
unset PYTHONPATH

step() { printf '\n=== %s (%s s)\n' "$1" "$SECONDS"; }

# the interpreter of version $1; a pyenv shim is found even if it starts nothing
find_python() {
  local python
  for python in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
    if "$python" --version > /dev/null 2>&1; then echo "$python"; return; fi
  done
  echo "there is no Python $1" >&2
  return 1
}

# constraints.txt with the oldest version of package $1 that pyproject.toml allows, as $work/constraints.txt
constrain_to_oldest() {
  local oldest
  oldest=$(sed -nE "s/^  \"$1>=([0-9.]+),.*/\\1/p" pyproject.toml)
  sed -i "s/^$1==.*/$1==$oldest/" "$work/constraints.txt"
}
