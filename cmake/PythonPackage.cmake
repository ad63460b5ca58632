# What the two packages for Python share in Astra's build.
include_guard(GLOBAL)

# astra_venv_python(variable): the interpreter of build/venv, where there is one and nobody chose another.
macro(astra_venv_python variable)
  if(EXISTS ${CMAKE_SOURCE_DIR}/build/venv/bin/python AND NOT ${variable})
    set(${variable} ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
  endif()
endmacro()

# astra_python_package(target sources module depends...): the package as an import finds it: build/python/NAME, NAME being
# that of the folder `sources`, with links to the sources beside the module. `depends`: what else the target has to make.
function(astra_python_package target sources module)
  cmake_path(GET sources FILENAME name)
  set(package ${CMAKE_BINARY_DIR}/python/${name})
  set_target_properties(${module} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package})
  file(GLOB parts CONFIGURE_DEPENDS ${sources}/*)
  set(links "")
  foreach(part IN LISTS parts)
    cmake_path(GET part FILENAME file)
    if(NOT file STREQUAL "__pycache__")
      list(APPEND links COMMAND ${CMAKE_COMMAND} -E create_symlink ${part} ${package}/${file})
    endif()
  endforeach()
  add_custom_target(${target} ALL COMMAND ${CMAKE_COMMAND} -E make_directory ${package} ${links} DEPENDS ${module} ${ARGN}
    VERBATIM)
endfunction()
