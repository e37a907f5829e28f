/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/*
 * libbanyan_ckpt: a training process hands its state to its node's checkpoint daemon, which keeps the newest
 * steps in memory outside the process, copies them to another node and brings them to storage behind the
 * job's back.
 *
 *     bck_init(NULL, -1, -1);                                  // job, rank, world from the environment
 *     bck_protect("weights", w, n * sizeof *w, "F32", shape, 2);
 *     uint64_t step = 0;
 *     int found = bck_restart(&step, NULL);                    // waits until all ranks can have their state
 *     if (found == BCK_OK) ++step;                             // the regions now hold the newest complete step
 *     else if (found != BCK_E_NOTFOUND) stop(bck_error());     // not known to be none: do not begin anew
 *     for (; step < steps; ++step) {
 *         train();
 *         bck_checkpoint(step);
 *     }
 *     bck_finalize(1);
 *
 * Every function returns BCK_OK (0) or a negative BCK_E_... code and never throws, exits or raises a signal;
 * bck_error() says in words what the last code of this thread meant. No failure to save needs to stop the
 * training: without a daemon bck_checkpoint returns BCK_E_NODAEMON at once. A failure to hear what to begin
 * with does: only after BCK_E_NOTFOUND may a process begin anew, not after BCK_E_NODAEMON either. The user
 * hears of trouble once for the job, on standard error of rank 0 or of the leader's first rank. Thread-safety:
 * calls may come from any thread; they take turns. The protected memory must not change during bck_checkpoint
 * and bck_restart.
 * After fork() the child may use the library once it has called bck_init itself, as a rank of its own; until
 * then a call there is BCK_E_INVALID; one that was forked while another thread was in a call, only after an
 * exec. Nothing that it calls touches what is the parent's.
 */
/* clang-format on */
#ifndef BANYAN_CKPT_H
#define BANYAN_CKPT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BCK_API __attribute__((visibility("default")))
#else
#define BCK_API
#endif

#define BCK_OK 0
#define BCK_E_INVALID (-1)  /* an argument is wrong, or the calls came in the wrong order */
#define BCK_E_NODAEMON (-2) /* no daemon, or no session of this job in it: there may be checkpoints */
#define BCK_E_NOTFOUND (-3) /* there is no complete checkpoint: train from the beginning */
#define BCK_E_TIMEOUT (-4)  /* the level was not reached, or the daemon did not answer, in time */
#define BCK_E_BUSY (-5)     /* no buffer came free in time: this save was skipped, earlier ones stand */
#define BCK_E_LAYOUT (-6)   /* the checkpoint's regions are not those that are protected here */
#define BCK_E_MEMORY (-7)   /* the daemon's memory limit does not allow it, or no memory here */
#define BCK_E_REFUSED (-8)  /* the daemon refused: see bck_error() */
#define BCK_E_DEVICE \
    (-9) /* a copy from or to the GPU failed, or nothing is mapped where a region is said to lie */
#define BCK_E_STALE (-10) /* the ranks went back, or this one does not know to what: bck_restart says */

/* How safe a step is. */
enum bck_level {
    BCK_SEALED = 0,     /* in the daemon's memory: survives this process and the job step */
    BCK_MEMORY = 1,     /* complete on all ranks of the job */
    BCK_REPLICATED = 2, /* and every rank's shard has a copy on a second node: survives a node */
    BCK_DURABLE = 3     /* committed in storage */
};

/* Where bck_restart found this rank's shard. */
enum bck_source { BCK_FROM_NONE = 0, BCK_FROM_LOCAL = 1, BCK_FROM_PEER = 2, BCK_FROM_STORAGE = 3 };

/* Connects to the daemon. `job`: job id in decimal, NULL or "0" = $BANYAN_JOB; `rank` -1 = $RANK; `world` -1
 * = $WORLD_SIZE. The socket is $BANYAN_CKPT_SOCKET. A daemon that is being started again is waited for, five
 * seconds at most. Without a daemon returns BCK_E_NODAEMON; the other calls may be made all the same. */
BCK_API int bck_init(const char* job, int rank, int world);

/* Registers a region of `bytes` bytes at `ptr` (host or GPU memory) under `name` (1 to 512 bytes of UTF-8, no
 * leading "__"). `dtype` as safetensors writes it: F64 F32 F16 BF16 C64 I64 I32 I16 I8 U64 U32 U16 U8 BOOL
 * F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ (what has less than a byte for an element is saved as U8);
 * `shape` has `ndim` (0 to 16) extents whose product times the element's size must be `bytes`. The same
 * name again replaces the region. Regions are listed in the order in which their names first came. A region
 * is memory without gaps, row by row: of a tensor that lies otherwise give a copy. One of no bytes (an extent
 * of 0) is saved by its name and shape; `ptr` may be NULL. Two names may be the same memory, as tied weights
 * are: it is saved under each, and what is brought last stays in it. */
BCK_API int bck_protect(const char* name, void* ptr, size_t bytes, const char* dtype, const uint64_t* shape,
                        int ndim);

/* The same as a row of bytes. */
BCK_API int bck_protect_bytes(const char* name, void* ptr, size_t bytes);

/* The same for a region that is a part of a larger tensor: `global_shape` is the tensor's, `offset` where in
 * it the region begins, both with `ndim` extents. It is written into the checkpoint, so that another number
 * of ranks can put the tensor together (bck_restart, bck_reader_fill). A whole tensor is a piece, too. What
 * several ranks say is the same piece is the same to the library: storage may have one of them, and a rank
 * may begin with what another one has saved. bck_restart refuses a piece that this rank has saved as another
 * one (BCK_E_LAYOUT). */
BCK_API int bck_protect_piece(const char* name, void* ptr, size_t bytes, const char* dtype,
                              const uint64_t* shape, int ndim, const uint64_t* global_shape,
                              const uint64_t* offset);

/* Withdraws a region: when the call returns the library no longer uses its memory, and later steps are saved
 * without it. BCK_E_INVALID when none of this name is protected. */
BCK_API int bck_unprotect(const char* name);

/* Copies all regions into a buffer of the daemon's memory and seals it; what follows (checksum, second copy,
 * storage) is the daemon's. `step` counts up to 999999999999, and up: one that is not above the last one
 * saved is BCK_E_INVALID, until bck_restart goes back to an older state, or says that there is none; so is
 * one below the step that bck_restart has brought, from which a training counts on. Once a process of another
 * rank was started again, or called bck_restart after it had saved, the step is not saved and the code is
 * BCK_E_STALE, until this process has called bck_restart too. The call waits up to BANYAN_CKPT_WAIT_MS
 * (2000) for a free buffer, then skips this save with BCK_E_BUSY; while the daemon stands still the saves
 * after that one do not wait. The first save of a process that has never asked for its state asks whether
 * there is one: BCK_E_STALE then, too, until bck_restart has brought it. A step that is skipped so, or by
 * BCK_E_DEVICE or BCK_E_MEMORY, the other ranks pass over: save the next one. Neither allocates nor faults
 * pages once the memory is attached, which the first call of bck_restart_query, bck_restart or bck_checkpoint
 * does. */
BCK_API int bck_checkpoint(uint64_t step);

/* A region with memory that is given for one call alone; the fields are those of bck_protect_piece. */
typedef struct bck_tensor {
    const char* name;
    void* ptr; /* bck_checkpoint_of only reads there */
    uint64_t bytes;
    const char*
        dtype; /* NULL: the region that is protected under this name, where that is; only it is read */
    int ndim;
    const uint64_t* shape;
    const uint64_t* global_shape; /* NULL, with `offset`, where it is no piece */
    const uint64_t* offset;
} bck_tensor;

/* bck_checkpoint of exactly these regions, whatever is protected, as for a framework's dictionary of tensors
 * that lie elsewhere each time: no pointer is kept when the call returns. The next step may hold others, and
 * another rank others than this one; none (`count` 0) is a step in which this rank has nothing. The same list
 * as one of the last few, but for its pointers, costs nothing more, and allocates nothing. */
BCK_API int bck_checkpoint_of(uint64_t step, const bck_tensor* tensors, size_t count);

/* Makes the memory for a save of these regions now, and pins it where one is in a GPU's memory: the first
 * bck_checkpoint_of then costs what later ones do. `tensors` NULL with `count` 0: for what is protected.
 * Nothing is read there, and saves of other regions work as before. BCK_E_MEMORY where they do not fit: that
 * is of this state alone, as it is at bck_checkpoint; a smaller one is saved. */
BCK_API int bck_reserve(const bck_tensor* tensors, size_t count);

/* bck_checkpoint_of in two halves, so that the copy runs while the process goes on: the regions may be read,
 * and must not change, between the two. `tensors` NULL with `count` 0: what is protected. Host memory is
 * copied by a thread of the library; a GPU's on a stream of its own, behind what is queued on `stream` (a
 * CUstream or cudaStream_t of the GPU that the regions are on; NULL: the default stream) when begin is
 * called. bck_checkpoint and bck_checkpoint_of, which name no stream, wait for all that is queued on the GPU.
 * Codes as those of bck_checkpoint: begin's of whether there is a buffer, end's of the copy and the seal;
 * after any but BCK_OK the save is over, and skipped. Between the two bck_wait, bck_heartbeat and
 * bck_seal_requested may be called; another save of the state and bck_unprotect are BCK_E_INVALID, and
 * bck_restart or bck_finalize gives this one up. */
BCK_API int bck_checkpoint_begin(uint64_t step, const bck_tensor* tensors, size_t count, void* stream);
BCK_API int bck_checkpoint_end(void);

/* 1 when somebody has asked that the job be saved since its newest save began (an administrator, or the fault
 * daemon before it takes a node); else 0. Costs nanoseconds. The ranks may see it at different steps: let one
 * rank ask, and tell the others with what they exchange at each step. */
BCK_API int bck_seal_requested(void);

/* Says that this rank is alive, at which step, and in which phase of it: numbers of the program's own, such
 * as 0 for the data, 1 for forward and backward, 2 for an evaluation. Costs nanoseconds: call it where a
 * phase begins. By it a rank that hangs is found, once no rank of the job has said anything for far longer
 * than it usually does in its phase: the one that is behind all others (`banyan-ckpt status
 * --json`, "hung"). A program that never calls it says as much by its saves. */
BCK_API void bck_heartbeat(uint64_t step, uint32_t phase);

/* Waits until `step` or a newer one has reached `level`. `timeout_ms` 0 only looks; -1 waits without end.
 * Other threads' calls take their turns meanwhile: what is waited for may be their next save. BCK_E_STALE as
 * above. BCK_E_INVALID for a level that no step of the job reaches: BCK_REPLICATED on one node, BCK_DURABLE
 * where nothing is flushed. */
BCK_API int bck_wait(uint64_t step, int level, int timeout_ms);

/* Gives `step` a name by which it stays in the job's directory, however many newer ones come, and has it
 * brought there now, behind the program's back. A step that has the name loses it. Saves go on meanwhile:
 * where a newer step is complete before storage has taken this one, the name is that one's. `name`: letters a
 * to z, digits, _ and -, at most 32. For one rank to call, after its save; where several do they name the
 * same step. BCK_E_INVALID where nothing is flushed. `banyan-ckpt show DIR` lists the names, `drop
 * DIR/milestones/NAME` deletes one; bck_reader_open takes that path. */
BCK_API int bck_milestone(uint64_t step, const char* name);

/* The step that bck_restart would bring back, the same on all ranks; BCK_E_NOTFOUND when there is none.
 * Waits, at most ten minutes, until every node of the job has its ranks' state; rank 0 prints what is waited
 * for. BCK_E_REFUSED when a node's daemon does not answer, or has no session of the job, for too long
 * ([ckptd] restore_timeout), or has no memory for the step that is there, or storage does not answer:
 * bck_error() names the node. So it is where a node of an earlier run has what is missing of a replicated
 * step: no older one is taken. A call after that waits until the node was asked once more. A daemon that is
 * being started again is waited for as by bck_init, and looked for whatever was heard before. An error is not
 * "there is none": only after BCK_E_NOTFOUND may the training begin anew, and a process that has heard an
 * error, and has not begun before, saves nothing (BCK_E_STALE) until bck_restart gives it its state or says
 * that there is none. No region need be protected for it. */
BCK_API int bck_restart_query(uint64_t* step);

/* What the step holds that bck_restart would bring to this rank; in a job with --train-min-dp that may be
 * what another rank has saved, whose state is the same. BCK_E_LAYOUT: another number of ranks has saved the
 * step, and none of it is this rank's (bck_reader_open_job). No region need be protected for it: memory for
 * them may be made after it. */
typedef struct bck_contents bck_contents;

/* One region of it. What is pointed to belongs to the bck_contents. */
typedef struct bck_region {
    const char* name;
    const char* dtype;
    int ndim;
    const uint64_t* shape;
    uint64_t bytes;
    const uint64_t* global_shape; /* as at bck_protect_piece; NULL where nothing was said */
    const uint64_t* offset;
} bck_region;

/* Makes a bck_contents, which the caller frees; on an error `*contents` is NULL. Waits like
 * bck_restart_query, and makes memory for the step in the daemon. Only before the first bck_checkpoint (or
 * since bck_restart): BCK_E_INVALID later. */
BCK_API int bck_stat(bck_contents** contents);
BCK_API uint64_t bck_contents_step(const bck_contents* contents);
BCK_API size_t bck_contents_size(const bck_contents* contents);
/* By place (0 to size - 1), and by name (BCK_E_LAYOUT when the step has none such). */
BCK_API int bck_contents_at(const bck_contents* contents, size_t index, bck_region* region);
BCK_API int bck_contents_find(const bck_contents* contents, const char* name, bck_region* region);
BCK_API void bck_contents_free(bck_contents* contents); /* NULL is fine */

/* Fills the regions with the newest complete step; waits like bck_restart_query. A process that has saved and
 * calls it goes back: every rank must call it then, and what a rank saves before it does counts no more.
 * Every protected region must be in the step with the same dtype and shape; what the step has besides is
 * passed over (bck_stat names it). Of a step that another number of ranks has saved each region takes its
 * part of the tensor from whatever ranks saved that (bck_protect_piece; bck_reader_open_job is for the rest).
 * `step` and `source` (one of enum bck_source) may be NULL. On an error the regions may hold a part of it
 * only when the code is BCK_E_DEVICE or BCK_E_REFUSED. After BCK_E_LAYOUT, where a
 * protected region is not in the step, or otherwise, nothing was brought: ask bck_stat, protect what is there
 * or give it to bck_restart_into, and call again. After any code but BCK_OK and BCK_E_NOTFOUND, also
 * BCK_E_NODAEMON and BCK_E_INVALID, the process saves nothing (BCK_E_STALE) until a later call gives it one
 * of these two: what it would save otherwise could take the place of the step that it was not given. */
BCK_API int bck_restart(uint64_t* step, int* source);

/* The same into these regions alone, whatever is protected. None (`count` 0) goes to the step without
 * bringing anything: so a program says that it goes on with what it has. */
BCK_API int bck_restart_into(uint64_t* step, int* source, const bck_tensor* tensors, size_t count);

/* A second state of the process, with steps of its own: weights that are averaged, a data loader, what is
 * saved every hundredth step beside what is saved at each. `name`: 1 to 32 of a to z, 0 to 9, _ and -,
 * beginning with a letter or a digit; a job has four such states at most, and every rank opens and saves the
 * same ones. The same name again is the same state. NULL on an error, with bck_error(); without a daemon the
 * state is there all the same. It is the library's own, until bck_finalize or another bck_init; after that it
 * has to be opened anew.
 *
 * Each state has its regions, its steps and what becomes of them: nothing that is said or done of one touches
 * another, and what is newest of one says nothing of the others. A process that was started again has lost
 * all its states, so all of them go back, each to its own newest complete step: bck_state_restart, once for
 * each. Who calls it after a save takes the ranks back in that one alone. In storage a state lies in
 * states/NAME of the job's checkpoint directory. All of them together have the job's memory. */
typedef struct bck_state bck_state;
BCK_API bck_state* bck_open(const char* name);

/* The functions above, of one state; NULL is the one without a name, of which those without `state` are. */
BCK_API int bck_state_protect(bck_state* state, const char* name, void* ptr, size_t bytes, const char* dtype,
                              const uint64_t* shape, int ndim);
BCK_API int bck_state_protect_bytes(bck_state* state, const char* name, void* ptr, size_t bytes);
BCK_API int bck_state_protect_piece(bck_state* state, const char* name, void* ptr, size_t bytes,
                                    const char* dtype, const uint64_t* shape, int ndim,
                                    const uint64_t* global_shape, const uint64_t* offset);
BCK_API int bck_state_unprotect(bck_state* state, const char* name);
BCK_API int bck_state_checkpoint(bck_state* state, uint64_t step);
BCK_API int bck_state_checkpoint_of(bck_state* state, uint64_t step, const bck_tensor* tensors, size_t count);
BCK_API int bck_state_reserve(bck_state* state, const bck_tensor* tensors, size_t count);
BCK_API int bck_state_checkpoint_begin(bck_state* state, uint64_t step, const bck_tensor* tensors,
                                       size_t count, void* stream);
BCK_API int bck_state_checkpoint_end(bck_state* state);
BCK_API int bck_state_wait(bck_state* state, uint64_t step, int level, int timeout_ms);
BCK_API int bck_state_milestone(bck_state* state, uint64_t step, const char* name);
BCK_API int bck_state_restart_query(bck_state* state, uint64_t* step);
BCK_API int bck_state_stat(bck_state* state, bck_contents** contents);
BCK_API int bck_state_restart(bck_state* state, uint64_t* step, int* source);
BCK_API int bck_state_restart_into(bck_state* state, uint64_t* step, int* source, const bck_tensor* tensors,
                                   size_t count);

/* Reads a step by name: what any rank has saved, and any part of any tensor. All that is read is held against
 * its checksums. One thread at a time for each bck_reader. */
typedef struct bck_reader bck_reader;

/* A step of a checkpoint directory, in a job or outside of any: no daemon and no bck_init are needed. `dir`
 * as in --train-ckpt=dir=, or states/NAME in it; `step` NULL: the newest that is committed. With NULL it may
 * be the path of a milestone, too. BCK_E_NOTFOUND: there is none. BCK_E_REFUSED: it is damaged (no older one
 * is taken for it), or cannot be looked at. The caller closes it.
 */
BCK_API int bck_reader_open(const char* dir, const uint64_t* step, bck_reader** reader);
/* The step to which the ranks of the job go back, from whatever holds it: this node's memory, another's, or
 * the job's directory. Waits like bck_restart_query, with its codes. For a job with another number of ranks
 * than those that saved it, and for what another rank has saved: who has filled what it needs says by
 * bck_restart_into(&step, NULL, NULL, 0) that it goes on from there. It can be read until the ranks have
 * saved a newer one; after that, and when the ranks go back once more, functions of this reader return
 * BCK_E_REFUSED. */
BCK_API int bck_reader_open_job(bck_state* state, bck_reader** reader);
BCK_API uint64_t bck_reader_step(const bck_reader* reader);
BCK_API uint32_t bck_reader_world(const bck_reader* reader);
/* What rank `rank` (below bck_reader_world) has saved; the caller frees it. BCK_E_LAYOUT: nobody has its
 * shard any more, as where a job with fewer data parallel groups has lost those of one; others may hold the
 * same. */
BCK_API int bck_reader_stat(bck_reader* reader, uint32_t rank, bck_contents** contents);
/* Fills regions of any layout. One with `global_shape` and `offset` is a part of the tensor of its name: it
 * is put together from whatever parts the ranks have saved of that, in whatever number of ranks. One without
 * comes from what `rank` has saved under its name. BCK_E_LAYOUT: the step has no such tensor, or not all of
 * it; the regions before that one are filled. Needs memory for 32 MiB, and for a region in a GPU's memory its
 * size. */
BCK_API int bck_reader_fill(bck_reader* reader, uint32_t rank, const bck_tensor* tensors, size_t count);
BCK_API void bck_reader_close(bck_reader* reader); /* NULL is fine */

/* Ends the use of the library, of all states. `drain` != 0: waits (at most a minute) until what was saved is
 * complete in memory and, when the job flushes its steps, in storage: BCK_E_TIMEOUT when the newest step that
 * this rank has saved is not complete, storage has not got the newest complete one, or nobody has said so in
 * time; BCK_E_NODAEMON when there is nobody to say so; and bck_error() says why. The saved steps stay
 * with the daemon until the job ends, and for its lease after that unless every rank of the node has drained
 * with BCK_OK. A process that ends without it has died as far as the daemon knows, which brings the newest
 * complete step to storage.
 */
BCK_API int bck_finalize(int drain);

/* What the last error of the calling thread was, in words; "" when there was none. Valid until its next call.
 */
BCK_API const char* bck_error(void);

/* The library's release, such as "0.1.0". */
BCK_API const char* bck_version(void);

/* Whether the library can copy from and to GPUs: 1 where the process has loaded CUDA's driver, as every
 * program has that has memory of a GPU, else 0. */
BCK_API int bck_has_cuda(void);

#ifdef __cplusplus
}
#endif
#endif
