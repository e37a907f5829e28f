/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forks beside threads that allocate, as Slurm's daemons do, and allocates in the child. The exit status is 1
 * when a child hangs. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 3, blocks = 40, forks = 40, deadline_s = 30 };

static void allocate(int rounds) {
    while (rounds-- > 0) {
        void* some[blocks];
        for (int i = 0; i < blocks; ++i) some[i] = malloc(16u << (i % 12));
        for (int i = 0; i < blocks; ++i) free(some[i]);
    }
}

static void* work(void* unused) {
    allocate(300);
    return unused;
}

/* 0 when the child ended by itself. */
static int fork_beside(int turn) {
    pthread_t beside[threads];
    for (int i = 0; i < threads; ++i) pthread_create(&beside[i], NULL, work, NULL);
    usleep((useconds_t)(turn * 20));
    const pid_t child = fork();
    if (child == 0) {
        alarm(deadline_s);
        allocate(200);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    for (int i = 0; i < threads; ++i) pthread_join(beside[i], NULL);
    return status;
}

int main(void) {
    for (int turn = 0; turn < forks; ++turn)
        if (fork_beside(turn) != 0) {
            printf("the child of fork %d hung\n", turn);
            return 1;
        }
    return 0;
}
