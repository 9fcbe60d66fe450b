# Installs BUILD, builds docs/examples/plugin against it, and runs both plug-ins.
set(work ${BUILD}/tests/install/work)
file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${work}/example RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command} ended with ${code}:\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(expect text)
  string(FIND "${out}" "${text}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "expected '${text}' in:\n${out}")
  endif()
endfunction()

# Out of the source tree, so that nothing is found there by accident.
file(COPY ${SOURCE}/docs/examples/plugin/ DESTINATION ${work}/example)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix --component kernbench)
run(${CMAKE_COMMAND} -S . -B build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_CXX_FLAGS=-Wall\ -Wextra\ -Werror)
run(${CMAKE_COMMAND} --build build)

set(tool ${work}/prefix/bin/kernbench)
set(machine --topology ring8 --set system.sips.count=2 --set sip.cube_mesh.w=1 --set sip.cube_mesh.h=1)
run(${tool} run --plugin build/axpy.so axpy --help)
expect("--elements")
run(${tool} run --plugin build/axpy.so axpy ${machine} --elements 1000 --json result.json)
expect("rank 1")
run(${tool} run --from result.json)
expect("rank 1")
run(${tool} run all_reduce ${machine} -b 4K -e 4K --ccl ccl.yaml --algorithm pass_around)
expect("algorithm pass_around")
expect("Out of bounds values : 0 OK")
