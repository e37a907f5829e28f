/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crash NAME HOW: ends as a process of that name. HOW: "segfault", or "trap" for an instruction that there is
 * none of. */
#include <string.h>
#include <sys/prctl.h>

int main(int count, char** words) {
    if (count != 3) return 2;
    prctl(PR_SET_NAME, words[1], 0, 0, 0);
    if (strcmp(words[2], "trap") == 0) __builtin_trap();
    *(volatile int*)0 = 1;
    return 0;
}
