#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# by_rank.sh "NAME=value ..." "NAME=value ..." ... -- program [arguments]: runs the program with the environment that
# stands at the place of its rank, so that ranks find drivers of different vendors.
left=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
own=
while [ "$1" != -- ]; do
  [ "$left" -ne 0 ] || own=$1
  left=$((left - 1))
  shift
done
shift
exec env $own "$@"
