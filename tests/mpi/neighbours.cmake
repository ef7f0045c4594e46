# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: neighbourhood collectives, by each way that a call pair by pair can go.
foreach(row IN ITEMS "library nccl ACCORD_ALGORITHM=nccl ACCORD_CCL_LIBRARIES=nccl:$<TARGET_FILE:fake_nccl>"
                     "staged staged ACCORD_ALGORITHM=staged" "region node-pairs ACCORD_DIRECT_BYTES=0"
                     "direct node-pairs ACCORD_DIRECT_BYTES=1" "inbox inbox ACCORD_INBOX_CALLS=1"
                     "nodes two-level-pairs ACCORD_NODE_SPLIT=0,1 ACCORD_TWO_LEVEL_BYTES=4")
  separate_arguments(row)
  list(POP_FRONT row name path)
  accord_mpi_test(NAME mpi.${flavour}.neighbours.${name} FLAVOUR ${flavour} RANKS 3
    COMMAND accord_neighbours_${flavour} ${path} PRELOAD accord LABELS mpi TIMEOUT 60
    ENVIRONMENT ${regions} ${row})
endforeach()
# Two ranks are each other's neighbours on both sides.
accord_mpi_test(NAME mpi.${flavour}.neighbours.both_sides FLAVOUR ${flavour} RANKS 2
  COMMAND accord_neighbours_${flavour} node-pairs PRELOAD accord LABELS mpi TIMEOUT 60 ENVIRONMENT ${regions})
accord_mpi_test(NAME mpi.${flavour}.neighbours.both_sides_inbox FLAVOUR ${flavour} RANKS 2
  COMMAND accord_neighbours_${flavour} inbox PRELOAD accord LABELS mpi TIMEOUT 60
  ENVIRONMENT ${regions} ACCORD_INBOX_CALLS=1)
