/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands for libnvidia-ml.so.1, as far as banyan calls it: FAKE_NVML has a letter for each GPU, or is
 * "none" (the driver is not loaded). w well, e with errors, l lost, n without ECC, r no row to remap to, p a
 * row waits to be remapped, q wants a reset, s slowed down by heat, k an NVLink down, u a
 * program computes on it.
 * FAKE_FABRIC has a letter for each GPU, too; without it no GPU is of a fabric: a or b registered in the
 * domain of that name, c in another clique of a, z with no cluster, n state "not supported", i in progress, f
 * failed, x the call fails.
 * Whoever breaks a rule of nvml.h (13.0) is ended, and told which: the real one would say
 * NVML_ERROR_UNINITIALIZED or NVML_ERROR_INVALID_ARGUMENT, or read what is not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    success = 0,
    not_supported = 3,
    insufficient_size = 7,
    driver_not_loaded = 9,
    gpu_is_lost = 15,
    reset_required = 16
};

static const char* gpus(void) {
    const char* text = getenv("FAKE_NVML");
    return text ? text : "";
}

static int initialized;
static char given[256]; /* which handles */

static void must(int kept, const char* rule, const char* source) {
    if (kept) return;
    fprintf(stderr, "mock of NVML: %s (nvml.h, %s)\n", rule, source);
    abort();
}

/* "This method needs to be called once before any usage of NVML Library APIs." */
static void begin(void) { must(initialized, "nvmlInit_v2 comes before every other function", "nvmlInit_v2"); }

/* "NVML_ERROR_INVALID_ARGUMENT if device is invalid": each function. A handle is what
 * nvmlDeviceGetHandleByIndex has set; where that fails it has set none. */
static char letter(const void* device) {
    begin();
    must((size_t)device - 1 < sizeof given && given[(size_t)device - 1], "that is no handle",
         "nvmlDeviceGetHandleByIndex_v2");
    return gpus()[(size_t)device - 1];
}

int nvmlInit_v2(void) {
    initialized = strcmp(gpus(), "none") != 0;
    return initialized ? success : driver_not_loaded;
}

/* "Shutdown will only occur after the reference count reaches zero": nothing is left of the handles then. */
int nvmlShutdown(void) {
    begin();
    initialized = 0;
    memset(given, 0, sizeof given);
    return success;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
    begin();
    *count = (unsigned)strlen(gpus());
    return success;
}

/* "index >= 0 and < accessibleDevices". */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    begin();
    must(index < strlen(gpus()) && index < sizeof given, "there is no GPU of that index",
         "nvmlDeviceGetHandleByIndex_v2");
    if (gpus()[index] == 'l') return gpu_is_lost;
    given[index] = 1;
    *device = (void*)((size_t)index + 1);
    return success;
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3(void* device, struct pci* into) {
    (void)letter(device);
    memset(into, 0xff, sizeof *into);
    snprintf(into->bus_id, sizeof into->bus_id, "00000000:%02X:00.0", (unsigned)(size_t)device);
    return success;
}

int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
    const char is = letter(device);
    must(type == 0 || type == 1, "errors are corrected or not", "nvmlMemoryErrorType_t");
    must(counter == 0 || counter == 1, "a counter is volatile or aggregate", "nvmlEccCounterType_t");
    if (type != 1 || counter != 0) return not_supported;
    *errors = is == 'e' ? 3 : 0;
    if (is == 'q') return reset_required;
    return is == 'n' ? not_supported : success;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
    *reasons = letter(device) == 's' ? 0x40 : 0x1; /* heat; idle */
    return success;
}

/* "NVML_ERROR_INSUFFICIENT_SIZE if infoCount is too small (infoCount will contain the minimal amount of space
 * necessary)"; with none running success. */
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* into) {
    must(into || *count == 0, "without room there is none", "nvmlDeviceGetComputeRunningProcesses_v3");
    if (letter(device) != 'u') return *count = 0, success;
    const unsigned room = *count;
    *count = 1;
    return room > 0 ? success : insufficient_size;
}

int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
    const char is = letter(device);
    must(link < 36, "there are no links of that number", "NVML_NVLINK_MAX_LINKS");
    if (link >= 2) return not_supported;
    *active = is != 'k' || link == 0;
    return success;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
    *corrected = *uncorrected = 0;
    *pending = letter(device) == 'p';
    *failed = letter(device) == 'r';
    return success;
}

#ifndef WITHOUT_FABRIC
struct fabric {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};
struct fabric_v2 {
    unsigned version;
    struct fabric is;
    unsigned health;
};

int nvmlDeviceGetGpuFabricInfo(void* device, struct fabric* into) {
    (void)letter(device);
    const char* text = getenv("FAKE_FABRIC");
    const char is = text && strlen(text) >= (size_t)device ? text[(size_t)device - 1] : 0;
    if (is == 0) return not_supported;
    if (is == 'x') return gpu_is_lost;
    memset(into, 0, sizeof *into);
    if (is != 'z') memset(into->cluster, is == 'b' ? 0xb0 : 0x0a, sizeof into->cluster);
    into->clique = is == 'c' ? 4294967295u : 7;
    into->status = is == 'f' ? 999 : success;
    into->state = is == 'n' ? 0 : is == 'i' ? 2 : 3;
    return success;
}

#ifndef WITHOUT_FABRIC_V
int nvmlDeviceGetGpuFabricInfoV(void* device, struct fabric_v2* into) {
    must(into->version == (36 | 2 << 24), "the caller says which structure it has",
         "nvmlDeviceGetGpuFabricInfoV");
    return nvmlDeviceGetGpuFabricInfo(device, &into->is);
}
#endif
#endif

const char* nvmlErrorString(int code) {
    return code == not_supported ? "Not Supported" : code == driver_not_loaded ? "Driver Not Loaded" : "Lost";
}
