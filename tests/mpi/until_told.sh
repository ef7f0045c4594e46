#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# until_told.sh TEXT COMMAND...: runs the command, and up to twice more where its output lacks the text. Launchers that
# end a job because a rank has ended may lose what that rank wrote last (MPICH's, once in some hundred times on a machine
# with more to do than it has cores).
text=$1
shift
for try in 1 2 3; do
  output=$("$@" 2>&1)
  code=$?
  case $output in *"$text"*) break ;; esac
done
printf '%s\n' "$output"
exit $code
