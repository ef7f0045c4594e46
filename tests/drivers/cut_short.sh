#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# cut_short.sh <folder> <library> <name>...: what a full disk leaves of the library, under each of the names.
folder=$1
library=$2
shift 2
for name; do
  head -c $(($(stat -c %s "$library") / 4)) "$library" > "$folder/$name"
done
