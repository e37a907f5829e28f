// SPDX-License-Identifier: BSD-3-Clause
//
// Submits a batch job with any SPANK environment, which Slurm's own tools do not let a user do but its
// library does:
//
//     submit SCRIPT NODES OUTPUT MODE ...
//
// MODE "given": the other arguments are the entries. "large BYTES": one entry that long. "many COUNT": that
// many small ones. Prints the job's id, or what slurmctld said, and ends with 1.
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char* large(long bytes) {
    char* entry = malloc((size_t)bytes + 1);
    memset(entry, 'x', (size_t)bytes);
    memcpy(entry, "LARGE=", 6);
    entry[bytes] = 0;
    return entry;
}

int main(int argc, char** argv) {
    static char script[1 << 16];
    char* environment[] = {"PATH=/usr/bin:/bin", NULL};
    job_desc_msg_t job;
    submit_response_msg_t* answer = NULL;
    FILE* file = argc > 4 ? fopen(argv[1], "r") : NULL;
    if (!file || fread(script, 1, sizeof script - 1, file) == 0) return 2;
    fclose(file);
    slurm_init(NULL);
    slurm_init_job_desc_msg(&job);
    job.name = "hostile";
    job.user_id = getuid();
    job.group_id = getgid();
    job.work_dir = "/";
    job.min_nodes = job.max_nodes = job.num_tasks = (uint32_t)atoi(argv[2]);
    job.script = script;
    job.environment = environment;
    job.env_size = 1;
    job.std_out = job.std_err = argv[3];
    job.spank_job_env = argv + 5;
    job.spank_job_env_size = (uint32_t)argc - 5;
    if (strcmp(argv[4], "large") == 0) {
        argv[5] = large(atol(argv[5]));
    } else if (strcmp(argv[4], "many") == 0) {
        const long count = atol(argv[5]);
        char name[32];
        job.spank_job_env = calloc((size_t)count + 1, sizeof(char*));
        job.spank_job_env_size = (uint32_t)count;
        for (long i = 0; i < count; ++i) {
            snprintf(name, sizeof name, "A%ld=x", i);
            job.spank_job_env[i] = strdup(name);
        }
    }
    if (slurm_submit_batch_job(&job, &answer) != SLURM_SUCCESS) {
        printf("refused: %s\n", slurm_strerror(slurm_get_errno()));
        if (answer && answer->job_submit_user_msg) printf("%s\n", answer->job_submit_user_msg);
        return 1;
    }
    printf("%u\n", answer->job_id);
    return 0;
}
