# Runs when cpack begins. The times in packages are those of the commit, or of SOURCE_DATE_EPOCH where it is set, so that
# packages made twice are equal. dpkg-shlibdeps, a Perl program, takes one of several packages that have a library in the order
# of a hash table, which differs from run to run unless it is told a seed.
set(ENV{PERL_HASH_SEED} 0)
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -C ${CPACK_ASTRA_SOURCE} log -1 --format=%ct OUTPUT_VARIABLE time ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(time)
    set(ENV{SOURCE_DATE_EPOCH} ${time})
  endif()
endif()
