/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loaded before the address sanitizer's runtime. Slurm forks with threads beside it and allocates in the
 * child, as glibc allows. g++ 12's runtime does not: a child of a fork that met another thread within the
 * allocator waits for its lock for ever. So one lock stands around the allocator, and a fork takes it. C++'s
 * operators do not come by here: the plugins use them in the thread that forks. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

void* __interceptor_malloc(size_t bytes);
void* __interceptor_calloc(size_t count, size_t bytes);
void* __interceptor_realloc(void* old, size_t bytes);
void* __interceptor_reallocarray(void* old, size_t count, size_t bytes);
void* __interceptor_memalign(size_t alignment, size_t bytes);
void* __interceptor_aligned_alloc(size_t alignment, size_t bytes);
int __interceptor_posix_memalign(void** out, size_t alignment, size_t bytes);
char* __interceptor_strdup(const char* text);
char* __interceptor___strdup(const char* text);
char* __interceptor_strndup(const char* text, size_t most);
void __interceptor_free(void* at);

static atomic_flag taken = ATOMIC_FLAG_INIT;
/* The runtime's own beginning, within the first malloc, looks up symbols, and that allocates. */
static __thread int depth __attribute__((tls_model("initial-exec")));

static void enter(void) {
    if (depth++ == 0)
        while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire)) sched_yield();
}

static void leave(void) {
    if (--depth == 0) atomic_flag_clear_explicit(&taken, memory_order_release);
}

/* Registered before anybody else's handlers, so taken after them and given back before them. */
__attribute__((constructor)) static void guard_forks(void) { pthread_atfork(enter, leave, leave); }

#define ALONE(call)                  \
    do {                             \
        enter();                     \
        __auto_type answer = (call); \
        leave();                     \
        return answer;               \
    } while (0)

void* malloc(size_t bytes) { ALONE(__interceptor_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { ALONE(__interceptor_calloc(count, bytes)); }
void* realloc(void* old, size_t bytes) { ALONE(__interceptor_realloc(old, bytes)); }
void* reallocarray(void* old, size_t count, size_t bytes) {
    ALONE(__interceptor_reallocarray(old, count, bytes));
}
void* memalign(size_t alignment, size_t bytes) { ALONE(__interceptor_memalign(alignment, bytes)); }
void* aligned_alloc(size_t alignment, size_t bytes) { ALONE(__interceptor_aligned_alloc(alignment, bytes)); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
    ALONE(__interceptor_posix_memalign(out, alignment, bytes));
}
char* strdup(const char* text) { ALONE(__interceptor_strdup(text)); }
char* __strdup(const char* text) { ALONE(__interceptor___strdup(text)); }
char* strndup(const char* text, size_t most) { ALONE(__interceptor_strndup(text, most)); }

void free(void* at) {
    enter();
    __interceptor_free(at);
    leave();
}
