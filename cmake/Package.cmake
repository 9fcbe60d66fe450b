# What an installation has beside the tool and its API: the man page, the presets, the schemas of files and the pages with their examples; and
# all of it as a Debian package (`make package`).
set(KERNBENCH_MAN ${PROJECT_BINARY_DIR}/kernbench.1)
add_custom_command(OUTPUT ${KERNBENCH_MAN}
  COMMAND ${PROJECT_SOURCE_DIR}/cmake/man.sh $<TARGET_FILE:kernbench> ${PROJECT_SOURCE_DIR}/docs/cli.md ${PROJECT_VERSION} > ${KERNBENCH_MAN}
  DEPENDS kernbench ${PROJECT_SOURCE_DIR}/cmake/man.sh ${PROJECT_SOURCE_DIR}/docs/cli.md VERBATIM)
add_custom_target(kernbench_man ALL DEPENDS ${KERNBENCH_MAN})
install(FILES ${KERNBENCH_MAN} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT kernbench)
install(DIRECTORY topology/presets DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/kernbench COMPONENT kernbench)
# What editors and compilers check their files by.
install(FILES topology/topology.schema.json runtime/pipeline/pipeline.schema.json DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/kernbench/schemas COMPONENT kernbench)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT kernbench PATTERN decisions EXCLUDE PATTERN Doxyfile EXCLUDE)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT kernbench)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "KernBench developers <kernbench@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Transaction-level model of a multi-chip AI accelerator")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What compiles against it.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++, cmake, libsystemc-dev, libfmt-dev, nlohmann-json3-dev, libboost-program-options-dev")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
include(CPack)
