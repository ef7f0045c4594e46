#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# bind_gpu.sh GPUS PROGRAM [ARGUMENT...]: shows this rank GPUS of the node's GPUs, chosen by its local
# rank, then becomes the program. More ranks than GPUs share them in turn. For `accord run --bind-gpu`.
per_rank=$1
shift

rank=$OMPI_COMM_WORLD_LOCAL_RANK
rank=${rank:-$MPI_LOCALRANKID}
rank=${rank:-$PALS_LOCAL_RANKID}
rank=${rank:-$FLUX_TASK_LOCAL_ID}
rank=${rank:-$SLURM_LOCALID}

# The GPUs the user allows, else all: CUDA numbers them from 0, whatever their device nodes are called.
list_gpus() {
  if [ -n "$CUDA_VISIBLE_DEVICES" ]; then
    echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n'
    return
  fi
  index=0
  for node in /dev/nvidia[0-9]*; do
    [ -e "$node" ] && echo "$index"
    index=$((index + 1))
  done
}

# choose RANK GPU...: the GPUs of this rank, with commas between them.
choose() {
  start=$(($1 * per_rank))
  shift
  [ "$#" -lt "$per_rank" ] && per_rank=$#
  chosen=
  for offset in $(seq 0 $((per_rank - 1))); do
    eval "gpu=\${$(((start + offset) % $# + 1))}"
    chosen=${chosen:+$chosen,}$gpu
  done
  echo "$chosen"
}

gpus=$(list_gpus)
if [ -n "$rank" ] && [ -n "$gpus" ]; then
  # shellcheck disable=SC2086 # one word a GPU
  CUDA_VISIBLE_DEVICES=$(choose "$rank" $gpus)
  export CUDA_VISIBLE_DEVICES
fi
exec "$@"
