# Everything comes from Debian packages (see Makefile, target `packages`).
include(SystemC)

find_package(yaml-cpp REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options context)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(pugixml REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(MINIZIP REQUIRED IMPORTED_TARGET minizip)
pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
