#!/bin/sh
# Runs the programs in C under a sanitizer, with C and Rust both instrumented:
#
#     tests/c/sanitize.sh address|thread LIBRARY RUNTIME [PROGRAM...]
#
# LIBRARY is libpaceline.a built with that sanitizer, RUNTIME the sanitizer's archive that belongs to the
# compiler of the library; docs/TESTING.md says how to get both. Without PROGRAMs, all of them run.
# Last comes tests/c/faults/$1.c, which must be reported.
set -eu

tool=$1 library=$2 runtime=$3
shift 3
here=$(dirname "$0")
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
export ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1:die_after_fork=0:report_thread_leaks=0

# The runtime comes first, so that it is what malloc and pthread_create mean to everybody.
compile() {
    ${CC:-clang} -std=c11 -g -O1 -D_GNU_SOURCE "-fsanitize=$tool" -I "$here/../../include" -c "$1" -o "$2.o"
    ${CC:-clang} -Wl,--whole-archive "$runtime" -Wl,--no-whole-archive "$2.o" "$library" \
        -lpthread -ldl -lm -lrt -o "$2"
}

# What the tool cannot know to be in order: a descriptor that one thread has registered, and another one
# closes that was told of it by the kernel (docs/TESTING.md).
only_descriptors() {
    [ "$tool" = thread ] && ! grep -q '\.[ch]:[0-9]*: ' "$1" &&
        [ "$(grep -c 'WARNING: ThreadSanitizer: data race' "$1")" = "$(grep -c 'Location is file descriptor' "$1")" ]
}

if [ $# -eq 0 ]; then
    set -- "$here"/*.c
fi
calls=1000000
[ "$tool" = address ] || calls=100000
failed=
for program do
    name=$(basename "$program" .c)
    compile "$here/$name.c" "$made/$name"
    # A million calls take the tool for races some minutes.
    status=0
    "$made/$name" 1 "$calls" >"$made/$name.log" 2>&1 || status=$?
    if [ $status -eq 0 ]; then
        echo "$name: ok"
    elif [ $status -eq 66 ] && only_descriptors "$made/$name.log"; then
        echo "$name: ok, but for descriptors"
    else
        cat "$made/$name.log"
        echo "$name: FAILED"
        failed="$failed $name"
    fi
done

compile "$here/faults/$tool.c" "$made/fault"
if "$made/fault" >"$made/fault.log" 2>&1 || ! grep -q "Sanitizer: " "$made/fault.log"; then
    cat "$made/fault.log"
    echo "the seeded fault was not reported"
    exit 1
fi
grep -m1 "Sanitizer: " "$made/fault.log"
[ -z "$failed" ]
