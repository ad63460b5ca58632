# Writes OUT: the commit of SOURCE's history as a constant of the program, "-dirty" behind it where files that git knows
# differ; "" where SOURCE is no top of a repository, or there is no git. Changes OUT only when its text does.
set(commit "")
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  file(REAL_PATH ${SOURCE} here)
  if(NOT failed AND top STREQUAL here)
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE commit
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    execute_process(COMMAND ${git} -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changed ERROR_QUIET)
    if(failed)
      set(commit "")
    elseif(changed)
      string(APPEND commit "-dirty")
    endif()
  endif()
endif()
file(WRITE ${OUT}.new "#include \"Commit.h\"\nconst char astra::compilerCommit[] = \"${commit}\";\n")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
