#!/bin/bash
# Replays a dump with 16 workers that Slurm starts, each with 4 tasks at a time, on a file system that all nodes see.
# Needs dask-jobqueue; run it on a login node or in a small job:
#
#   bash slurm-dask.sh /shared/job-17/dump
set -euo pipefail

dump=${1:?the directory of a dump}
hlotool run "$dump" \
    --cluster slurm:jobs=16,cores=4,processes=1,memory=16GB,queue=cpu,walltime=02:00:00 \
    --junit "job-17.xml"
