/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands for libnvidia-ml.so.1, as far as banyan-sweep calls it: FAKE_NVML has a letter for each GPU, or is
 * "none" (the driver is not loaded). w well, e with errors, l lost, n without ECC, r no row to remap to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0, not_supported = 3, driver_not_loaded = 9, gpu_is_lost = 15 };

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
    return letter(device) == 'n' ? not_supported : success;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
    *corrected = *uncorrected = *pending = 0;
    *failed = letter(device) == 'r';
    return success;
}

const char* nvmlErrorString(int code) {
    return code == not_supported ? "Not Supported" : code == driver_not_loaded ? "Driver Not Loaded" : "Lost";
}
