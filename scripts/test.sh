#!/usr/bin/env bash
# Runs all tests but the slow ones. Those of Spark share one session and wait much, so they run beside the others; what they
# print comes last.
set -u
cd "$(dirname "$0")/.."

mkdir -p build
.venv/bin/pytest -q -m 'not slow' tests/spark >build/spark-tests.log 2>&1 &
spark=$!
trap 'kill $spark 2>/dev/null' INT TERM
.venv/bin/pytest -q -n 3 --dist loadscope --no-loadscope-reorder --coverage -m 'not slow' --ignore tests/spark
others=$?
echo "== pytest tests/spark"
wait $spark
status=$?
cat build/spark-tests.log
exit $((others || status))
