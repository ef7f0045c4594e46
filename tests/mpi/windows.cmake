# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Included for a thorough flavour: one-sided calls on device memory, within a node and between nodes of pretence.
foreach(count IN ITEMS 2 3)
  accord_mpi_test(NAME mpi.${flavour}.windows.direct.${count} FLAVOUR ${flavour} RANKS ${count}
    COMMAND accord_windows_${flavour} direct PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host)
  accord_mpi_test(NAME mpi.${flavour}.windows.messages.${count} FLAVOUR ${flavour} RANKS ${count}
    COMMAND accord_windows_${flavour} messages PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=1)
endforeach()
