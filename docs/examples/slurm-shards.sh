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
    record=shard-$SLURM_ARRAY_TASK_ID.json
    hlotool run "$dump" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --json > "$record.part"
    # 0 to 5 are answers, whatever was found. Of a task that Slurm ends there is no record, and `merge` says so.
    [ $? -le 5 ] && mv "$record.part" "$record"
    ;;
merge)
    hlotool merge shard-*.json --junit job-17.xml
    ;;
esac
