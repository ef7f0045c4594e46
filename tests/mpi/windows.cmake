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
# Random programs against a model; on host memory they show that the model is as the host MPI.
foreach(memory IN ITEMS host device mixed)
  accord_mpi_test(NAME mpi.${flavour}.window_programs.${memory} FLAVOUR ${flavour} RANKS 3
    COMMAND accord_window_programs_${flavour} --seed 1 --count 150 --memory ${memory} PRELOAD accord LABELS mpi TIMEOUT 120
    ENVIRONMENT ACCORD_RUNTIME=host)
endforeach()
accord_mpi_test(NAME mpi.${flavour}.window_programs.nodes FLAVOUR ${flavour} RANKS 3
  COMMAND accord_window_programs_${flavour} --seed 1001 --count 100 PRELOAD accord LABELS mpi TIMEOUT 120
  ENVIRONMENT ACCORD_RUNTIME=host ACCORD_NODE_SPLIT=1)
