#!/bin/bash
# Replays a dump as 16 shards, a job array of Slurm, and makes their records one; needs nothing but Slurm and a file
# system that all nodes see. In the folder that gets the records:
#
#   bash slurm-shards.sh /shared/job-17/dump
set -uo pipefail

dump=${1:?the directory of a dump}
case ${2:-submit} in
submit)
    array=$(sbatch --parsable --array=1-16 --cpus-per-task=4 --mem=16G --time=02:00:00 "$0" "$dump" shard) || exit
    sbatch --dependency="afterany:$array" --mem=2G "$0" "$dump" merge
    ;;
shard)
    # A task that Slurm ends has no record, which `merge` says; given again, it goes on from the journal.
    hlotool run "$dump" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
        --journal journal --record "shard-$SLURM_ARRAY_TASK_ID.json"
    # 0 to 5 are answers, whatever was found.
    [ $? -le 5 ]
    ;;
merge)
    hlotool merge shard-*.json --junit job-17.xml
    ;;
esac
