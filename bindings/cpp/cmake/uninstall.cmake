# Removes the files that `cmake --install` has put into the list in the build directory.

if(NOT EXISTS install_manifest.txt)
    message(FATAL_ERROR "install_manifest.txt is not there: nothing was installed from this build directory")
endif()
file(STRINGS install_manifest.txt files)
foreach(file IN LISTS files)
    message(STATUS "Removing $ENV{DESTDIR}${file}")
    file(REMOVE "$ENV{DESTDIR}${file}")
endforeach()
