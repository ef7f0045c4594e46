# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# The same random calls with an adversarial MPI (tests/adversary) under Accord.

# adversary_run(<way> <flavour> <ranks> <cases> <told> [<NAME=value>...] [-- <option>...]), without and with a thread of
# Accord's own. It fails where Accord or the adversary reports 0 of what <told>, a regular expression, names.
function(adversary_run way flavour ranks cases told)
  if(NOT TARGET accord_conformance_${flavour}_adversary)
    return()
  endif()
  set(variables ${ARGN})
  set(options "")
  list(FIND variables "--" at)
  if(at GREATER_EQUAL 0)
    list(SUBLIST variables ${at} -1 options)
    list(POP_FRONT options)
    list(SUBLIST variables 0 ${at} variables)
  endif()
  foreach(thread IN ITEMS "" _thread)
    set(name adversary_${way}${thread})
    if(thread)
      list(APPEND variables ACCORD_PROGRESS_THREAD=on)
    endif()
    string(MD5 seed "${name}.${flavour}.${ranks}")
    string(SUBSTRING "${seed}" 0 6 seed)
    math(EXPR seed "0x${seed}")
    set(test conformance.${flavour}.${name}.${ranks})
    # Half of the sends, so that no message can count on either.
    accord_mpi_test(NAME ${test} FLAVOUR ${flavour} RANKS ${ranks}
      COMMAND accord_conformance_${flavour}_adversary --seed ${seed} --count ${cases} --case-timeout 60 ${options}
      PRELOAD accord LABELS conformance TIMEOUT 300
      ENVIRONMENT ACCORD_RUNTIME=host ACCORD_TEST_WATCH_MS=0 ACCORD_LOG=info ACCORD_TEST_ADVERSARY_SEED=${seed}
                  ACCORD_TEST_ADVERSARY_SENDS=1 ${variables})
    set_tests_properties(${test} PROPERTIES RUN_SERIAL ON
      FAIL_REGULAR_EXPRESSION " 0 (looks refused|probes refused|sends made|pauses|${told})")
  endforeach()
endfunction()

set(by_message --memory host,device --only p2p,exchange,requests,errors,progress)
foreach(run IN ITEMS "mpich 2" "openmpi 3")
  separate_arguments(run)
  list(GET run 0 flavour)
  list(GET run 1 ranks)
  adversary_run(plain ${flavour} ${ranks} 90 "completions reordered")
  adversary_run(chunks ${flavour} ${ranks} 90 "barriers" ${chunks} ACCORD_TEST_ADVERSARY_COLLECTIVES=1)
  adversary_run(messages ${flavour} ${ranks} 120 "completions|messages by headers" ${messages} -- ${by_message})
  adversary_run(node ${flavour} ${ranks} 72 "completions reordered" ${node})
  adversary_run(direct ${flavour} ${ranks} 90 "collectives straight" ${direct}
                -- --memory device --only reuse,collective,overlap,columns,progress)
  adversary_run(inbox ${flavour} ${ranks} 60 "collectives through inboxes" ${inbox} ACCORD_NODE_BYTES=0)
  adversary_run(two_level ${flavour} ${ranks} 72 "collectives in two|collectives pair by pair" ${two_level} ACCORD_NODE_SPLIT=1)
  adversary_run(ccl ${flavour} ${ranks} 72 "collectives by a collective library" ${ccl}
                ACCORD_CCL_LIBRARIES=nccl:$<TARGET_FILE:fake_nccl>)
endforeach()
adversary_run(plain openmpi 4 60 "barriers" ACCORD_TEST_ADVERSARY_COLLECTIVES=1)
