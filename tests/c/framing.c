/* Where messages end: whole, in parts, too long, and with arguments that make no sense. */
#include "check.h"

static bool is(pace_frame_t frame, const char *body, size_t length) {
    return frame.size == strlen(body) && memcmp(frame.body, body, frame.size) == 0 &&
           frame.length == length;
}

static void lines(void) {
    const char text[] = "ab\r\n\r\ncde\rf";
    pace_frame_t frame;
    size_t searched = 0;
    OK(pace_frame_delimited(text, 11, "\r\n", 2, 4, &searched, &frame));
    CHECK(is(frame, "ab", 4) && searched == 0);
    OK(pace_frame_delimited(text + 4, 7, "\r\n", 2, 4, &searched, &frame));
    CHECK(is(frame, "", 2));
    SAYS(PACE_EEMPTY, pace_frame_delimited(text + 6, 4, "\r\n", 2, 4, &searched, &frame));
    CHECK(searched == 3); /* a delimiter may have begun */
    OK(pace_frame_delimited("cde\r\n", 5, "\r\n", 2, 4, &searched, &frame));
    CHECK(is(frame, "cde", 5) && searched == 0);
    SAYS(PACE_EFULL, pace_frame_delimited("abcdefgh", 8, "\r\n", 2, 4, &searched, &frame));
    SAYS(PACE_EEMPTY, pace_frame_delimited(NULL, 0, "\n", 1, 4, &searched, &frame));
    searched = SIZE_MAX; /* nonsense does no harm */
    SAYS(PACE_EEMPTY, pace_frame_delimited("ab", 2, "\n", 1, 4, &searched, &frame));
    SAYS(PACE_EINVAL, pace_frame_delimited("ab", 2, "\n", 0, 4, &searched, &frame));
    SAYS(PACE_EINVAL, pace_frame_delimited("ab", 2, NULL, 1, 4, &searched, &frame));
    SAYS(PACE_EINVAL, pace_frame_delimited(NULL, 2, "\n", 1, 4, &searched, &frame));
    SAYS(PACE_EINVAL, pace_frame_delimited("ab", 2, "\n", 1, 4, NULL, &frame));
    SAYS(PACE_EINVAL, pace_frame_delimited("ab", 2, "\n", 1, 4, &searched, NULL));
}

static void lengths(void) {
    pace_frame_t frame;
    OK(pace_frame_prefixed("\0\3abcd", 6, 2, 10, &frame));
    CHECK(is(frame, "abc", 5));
    OK(pace_frame_prefixed("\0", 1, 1, 10, &frame));
    CHECK(is(frame, "", 1));
    SAYS(PACE_EEMPTY, pace_frame_prefixed("\0\3ab", 4, 2, 10, &frame));
    SAYS(PACE_EEMPTY, pace_frame_prefixed("\0", 1, 2, 10, &frame));
    SAYS(PACE_EFULL, pace_frame_prefixed("\0\13", 2, 2, 10, &frame));
    SAYS(PACE_EFULL,
         pace_frame_prefixed("\377\377\377\377\377\377\377\377", 8, 8, SIZE_MAX / 2, &frame));
    SAYS(PACE_EINVAL, pace_frame_prefixed("\0", 1, 0, 10, &frame));
    SAYS(PACE_EINVAL, pace_frame_prefixed("\0", 1, 9, 10, &frame));
    SAYS(PACE_EINVAL, pace_frame_prefixed(NULL, 1, 2, 10, &frame));
    SAYS(PACE_EINVAL, pace_frame_prefixed("\0", 1, 1, 10, NULL));
}

static void one_length(void) {
    const char text[] = "abcde";
    pace_frame_t frame;
    OK(pace_frame_fixed(text, 5, 2, &frame));
    CHECK(is(frame, "ab", 2) && frame.body == text);
    OK(pace_frame_fixed(text + 2, 3, 3, &frame));
    CHECK(is(frame, "cde", 3));
    SAYS(PACE_EEMPTY, pace_frame_fixed(text + 4, 1, 2, &frame));
    SAYS(PACE_EEMPTY, pace_frame_fixed(NULL, 0, 2, &frame));
    SAYS(PACE_EEMPTY, pace_frame_fixed(text, 5, SIZE_MAX, &frame));
    CHECK(is(frame, "cde", 3)); /* left alone */
    SAYS(PACE_EINVAL, pace_frame_fixed(text, 5, 0, &frame));
    TELLS("length is 0, but must be 1 or more");
    SAYS(PACE_EINVAL, pace_frame_fixed(NULL, 2, 2, &frame));
    SAYS(PACE_EINVAL, pace_frame_fixed(text, 5, 2, NULL));
}

int main(void) {
    check_begin();
    lines();
    lengths();
    one_length();
    return 0;
}
