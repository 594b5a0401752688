#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Run the model's unit tests (built by "make check") and add up their results.
#
# usage: check.sh TEST...
cd "$(dirname "$0")" || exit 2
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT
passed=0 failed=0

for t in "$@"; do
	if ! "build-san/$t" > "$out" 2>&1 || ! grep -q ' passed, 0 failed$' "$out"; then
		tail -20 "$out"
		failed=$((failed + 1))
	fi
	sed -n '$p' "$out"
	n=$(sed -n 's/.*: \([0-9]*\) passed.*/\1/p' "$out")
	passed=$((passed + ${n:-0}))
done

python3 test_wire.py build-san > "$out" 2>&1 || {
	cat "$out"
	failed=$((failed + 1))
}
n=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$out")
echo "wire: $(tail -1 "$out"), ${n:-0} tests"
passed=$((passed + ${n:-0}))

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
