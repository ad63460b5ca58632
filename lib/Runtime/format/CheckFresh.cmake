# Fails unless manifest_generated.h is what flatc makes of manifest.fbs today. To renew it:
#   cd lib/Runtime/format && flatc --cpp --gen-object-api --scoped-enums --reflect-types manifest.fbs
file(MAKE_DIRECTORY ${OUT})
execute_process(COMMAND ${FLATC} --cpp --gen-object-api --scoped-enums --reflect-types -o ${OUT} ${FORMAT}/manifest.fbs COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${OUT}/manifest_generated.h ${FORMAT}/manifest_generated.h
                RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "manifest_generated.h is not what flatc makes of manifest.fbs: run flatc again and commit the result")
endif()
