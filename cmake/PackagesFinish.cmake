# Runs after cpack has installed the components and before it packs them: what Debian wants otherwise than an install.
# Man pages and changelogs are compressed, zsh's functions lie in vendor-completions, no program looks for libraries in
# $ORIGIN, and every package says its licence.
find_program(gzip gzip REQUIRED)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(usr ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  if(NOT IS_DIRECTORY ${usr})
    message(FATAL_ERROR "nothing was installed for the package ${package} in ${usr}")
  endif()

  if(IS_DIRECTORY ${usr}/share/zsh/site-functions)
    file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)
  endif()
  file(GLOB programs ${usr}/bin/*)
  foreach(program IN LISTS programs)
    file(READ ${program} magic LIMIT 4 HEX)
    if(magic STREQUAL "7f454c46")
      file(STRINGS ${program} old REGEX "^\\$ORIGIN/\\.\\./lib" LIMIT_COUNT 1) # none where it is linked statically
      if(old)
        string(REGEX REPLACE "\\$ORIGIN[^:]*:?" "" new "${old}")
        file(RPATH_CHANGE FILE ${program} OLD_RPATH "${old}" NEW_RPATH "${new}")
      endif()
    endif()
  endforeach()

  set(doc ${usr}/share/doc/${package})
  file(REMOVE_RECURSE ${usr}/share/doc)
  file(MAKE_DIRECTORY ${doc})
  file(COPY_FILE ${CPACK_ASTRA_SOURCE}/packaging/debian/copyright ${doc}/copyright)
  foreach(file NOTICE CHANGELOG.md)
    if(EXISTS ${CPACK_ASTRA_SOURCE}/${file})
      file(COPY ${CPACK_ASTRA_SOURCE}/${file} DESTINATION ${doc})
    endif()
  endforeach()
  if(EXISTS ${doc}/CHANGELOG.md)
    file(RENAME ${doc}/CHANGELOG.md ${doc}/changelog)
  endif()
  file(WRITE ${doc}/changelog.Debian "astra (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  file(GLOB pages ${usr}/share/man/man1/*.1 ${doc}/changelog*)
  foreach(page IN LISTS pages)
    execute_process(COMMAND ${gzip} -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  file(GLOB_RECURSE files ${usr}/share/doc/*)
  file(CHMOD ${files} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(GLOB_RECURSE all LIST_DIRECTORIES true ${usr}/*)
  foreach(folder ${usr} ${all}) # whatever the umask is
    if(IS_DIRECTORY ${folder} AND NOT IS_SYMLINK ${folder})
      file(CHMOD ${folder} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    endif()
  endforeach()
endforeach()
