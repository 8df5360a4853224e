#!/bin/sh
# What a built package must do in an empty environment, without the checkout:
#     tests/smoke.sh DIST PYTHON CONSTRAINTS
# installs the wheel or source distribution DIST with the extras that a first hour needs, then runs
# the demo and an audit of the table that the demo writes.
set -eu
dist=$(realpath "$1") constraints=$(realpath "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$2" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --constraint "$constraints" "$dist[report,trees]"
cd "$folder"
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
venv/bin/farshore --version
venv/bin/farshore demo --steps 5 --quiet
test -s runs/demo.html
venv/bin/farshore demo --data patients.csv
venv/bin/farshore audit patients.csv --domain hospital --label disease --design glance --steps 20 \
    --methods ridge,trees --json > audit.json
test -s runs/audit-patients.csv.html
venv/bin/python -c 'import json; print(json.load(open("audit.json"))["decided"])'
