# Installs BUILD, builds docs/examples/plugin against it, and runs both plug-ins.
set(work ${BUILD}/tests/install/work)
include(${CMAKE_CURRENT_LIST_DIR}/install.cmake)

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
run(${tool} run --from result.json --plugin build/axpy.so)
expect("rank 1")
run(${tool} run all_reduce ${machine} -b 4K -e 4K --ccl ccl.yaml --algorithm pass_around)
expect("pass_around; ")
expect("Out of bounds values : 0 OK")
run(${tool} run broadcast ${machine} -b 4K -e 4K --root 1 --ccl ccl.yaml --algorithm chain)
expect("chain; ")
expect("Out of bounds values : 0 OK")
