# Gives the symbols of the SQLite that is in a static library names of its own, so that a program may have another SQLite:
#
#     cmake -DNM=nm -DOBJCOPY=objcopy -DLIBRARY=libpaceline.a -DOUTPUT=renamed.a -P own-symbols.cmake

# Objects without symbols make nm say so, on its standard error stream.
execute_process(COMMAND "${NM}" --defined-only --extern-only --format=posix "${LIBRARY}"
    OUTPUT_VARIABLE symbols RESULT_VARIABLE failed ERROR_VARIABLE why)
if(failed)
    message(FATAL_ERROR "${NM} cannot read ${LIBRARY}: ${why}")
endif()
string(REGEX MATCHALL "(^|\n)sqlite3[A-Za-z0-9_]* " names "${symbols}")
set(renamed "")
foreach(name IN LISTS names)
    string(STRIP "${name}" name)
    string(APPEND renamed "${name} paceline_${name}\n")
endforeach()
file(WRITE "${OUTPUT}.symbols" "${renamed}")
execute_process(COMMAND "${OBJCOPY}" "--redefine-syms=${OUTPUT}.symbols" "${LIBRARY}" "${OUTPUT}"
    RESULT_VARIABLE failed ERROR_VARIABLE why)
if(failed)
    message(FATAL_ERROR "${OBJCOPY} cannot rename symbols of ${LIBRARY}: ${why}")
endif()
