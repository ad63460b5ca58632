# What cpack runs when the packages are there. A .deb is an archive of ar, whose members carry the modes that cpack's own files
# had: those of the umask. They are made 100644, so that a package is the same bytes whoever makes it.
foreach(package IN LISTS CPACK_PACKAGE_FILES)
  if(NOT package MATCHES "\\.deb$")
    continue()
  endif()
  file(SIZE ${package} size)
  set(at 8) # behind "!<arch>\n"; a member's header has 60 bytes, its mode at 40, its size at 48 (deb(5), ar(5))
  while(at LESS size)
    math(EXPR mode "${at} + 40")
    math(EXPR length "${at} + 48")
    execute_process(COMMAND sh -c "printf '100644  ' | dd of=\"$1\" bs=1 seek=${mode} conv=notrunc status=none" sh ${package}
      COMMAND_ERROR_IS_FATAL ANY)
    file(READ ${package} bytes OFFSET ${length} LIMIT 10)
    string(STRIP "${bytes}" bytes)
    math(EXPR at "${at} + 60 + ${bytes} + ${bytes} % 2")
  endwhile()
endforeach()
