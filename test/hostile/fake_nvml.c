/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands for libnvidia-ml.so.1, as far as banyan calls it: FAKE_NVML has a letter for each GPU, or is
 * "none" (the driver is not loaded). w well, e with errors, l lost, n without ECC, r no row to remap to, p a
 * row waits to be remapped, q wants a reset, s slowed down by heat, k an NVLink down.
 * FAKE_FABRIC has a letter for each GPU, too; without it no GPU is of a fabric: a or b registered in the
 * domain of that name, c in another clique of a, z with no cluster, n state "not supported", i in progress, f
 * failed, x the call fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0, not_supported = 3, driver_not_loaded = 9, gpu_is_lost = 15, reset_required = 16 };

static const char* gpus(void) {
    const char* text = getenv("FAKE_NVML");
    return text ? text : "";
}
static char letter(const void* device) { return gpus()[(size_t)device - 1]; }

int nvmlInit_v2(void) { return strcmp(gpus(), "none") == 0 ? driver_not_loaded : success; }

int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = (unsigned)strlen(gpus());
    return success;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    *device = (void*)((size_t)index + 1);
    return letter(*device) == 'l' ? gpu_is_lost : success;
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, ids, subsystem;
    char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3(void* device, struct pci* into) {
    memset(into, 0xff, sizeof *into);
    snprintf(into->bus_id, sizeof into->bus_id, "00000000:%02X:00.0", (unsigned)(size_t)device);
    return success;
}

int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
    if (type != 1 || counter != 0) return not_supported;
    *errors = letter(device) == 'e' ? 3 : 0;
    if (letter(device) == 'q') return reset_required;
    return letter(device) == 'n' ? not_supported : success;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
    *reasons = letter(device) == 's' ? 0x40 : 0x1; /* heat; idle */
    return success;
}

int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
    if (link >= 2) return not_supported;
    *active = letter(device) != 'k' || link == 0;
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
    const unsigned version = into->version;
    if (version != (36 | 2 << 24)) return 25; /* argument version mismatch */
    return nvmlDeviceGetGpuFabricInfo(device, &into->is);
}
#endif
#endif

const char* nvmlErrorString(int code) {
    return code == not_supported ? "Not Supported" : code == driver_not_loaded ? "Driver Not Loaded" : "Lost";
}
