# Installs the libraries of BUILD, builds docs/examples/machine and docs/examples/hbm against them, and runs both: alone, and
# with the protocol checker at their borders, which has nothing to say. Then a network and a link alone: tests/install/parts.
set(work ${BUILD}/tests/install/libraries)
include(${CMAKE_CURRENT_LIST_DIR}/install.cmake)

# Out of the source tree, so that nothing is found there by accident.
file(MAKE_DIRECTORY ${work}/example)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix --component libraries)
file(COPY ${SOURCE}/tests/support/protocol_checker.h DESTINATION ${work}/prefix/include/kernbench/tests/support)
foreach(example machine hbm)
  file(COPY ${SOURCE}/docs/examples/${example} DESTINATION ${work}/example)
  foreach(watch "" "-DKERNBENCH_WATCH=kernbench::test::ProtocolChecker -include tests/support/protocol_checker.h")
    set(libraries "")
    if(watch)
      set(libraries -lgtest)
    endif()
    run(${CMAKE_COMMAND} -S ${example} -B ${example}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${work}/prefix
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror ${watch}"
      -DCMAKE_CXX_STANDARD_LIBRARIES=${libraries})
    run(${CMAKE_COMMAND} --build ${example}/build)
    file(GLOB programs ${work}/example/${example}/build/own_main ${work}/example/${example}/build/hbm_platform)
    run(${programs})
    expect(" 0 ")  # wrong ones; the programs' status says so too
    expect("wrong")
    string(FIND "${out}" "Failure" failed)
    if(NOT failed EQUAL -1)
      message(FATAL_ERROR "${example}: the protocol checker says:\n${out}")
    endif()
    message(STATUS "${example}: ${out}")
  endforeach()
endforeach()

file(COPY ${SOURCE}/tests/noc/bare_mesh.h DESTINATION ${work}/prefix/include/kernbench/tests/noc)
file(COPY ${SOURCE}/tests/install/parts DESTINATION ${work}/example)
run(${CMAKE_COMMAND} -S parts -B parts/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${work}/prefix
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
run(${CMAKE_COMMAND} --build parts/build)
foreach(part noc link)
  run(${work}/example/parts/build/${part}_alone)
  expect(": 0 wrong")
endforeach()
