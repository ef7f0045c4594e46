#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# side_by_side.sh PROGRAM PARTS: the tests of a program with GoogleTest, dealt out to so many processes at a time. For
# tests that sleep. Fails where one of them does.
program=$1
parts=$2
processes=
part=0
while [ "$part" -lt "$parts" ]; do
  GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part "$program" &
  processes="$processes $!"
  part=$((part + 1))
done
code=0
for process in $processes; do
  wait "$process" || code=$?
done
exit "$code"
