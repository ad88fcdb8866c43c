// A stand-in for NVIDIA's driver: enough of libcuda.so.1 for pycuda to run generated kernels on the CPU.
//
// Device memory is host memory, filled with 0xff when it is handed out. A "cubin" is an ELF library of this
// machine that holds, for each kernel, `void run_<kernel>(void** pointers, long long blocks)`; anything else is
// refused as made for another device. What it does is set by variables of the environment:
//
//   FAKE_CUDA_DEVICES=0           how many devices there are (1)
//   FAKE_CUDA_MEMORY=1000000      bytes that a device has (8 GiB)
//   FAKE_CUDA_FAIL=launch:3:700   the third call of launch, load, upload, download or synchronize fails
//
// Errors from 700 on are sticky, as those of a real context: every later call fails as well.
// `fake_cuda_count(name)` tells how often something happened, for tests in the same process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long Pointer;
enum {
  SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201, WRONG_ARCHITECTURE = 209, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, TIMEOUT = 702,
  LAUNCH_FAILED = 719,
};

// ---- what happened ----
static struct Counter { const char* name; long long value; } counters[16];
static long long* counter(const char* name) {
  struct Counter* c = counters;
  while (c->name && strcmp(c->name, name)) ++c;
  c->name = name;
  return &c->value;
}
long long fake_cuda_count(const char* name) { return *counter(strdup(name)); }

// ---- planned failures ----
static int sticky = SUCCESS;
static int outcome(const char* what) {
  if (sticky) return sticky;
  const long long number = ++*counter(what);
  const char* plan = getenv("FAKE_CUDA_FAIL");
  char planned[32];
  long long when;
  int error;
  if (!plan || sscanf(plan, "%31[^:]:%lld:%d", planned, &when, &error) != 3) return SUCCESS;
  if (strcmp(planned, what) || when != number) return SUCCESS;
  return error >= ILLEGAL_ADDRESS ? (sticky = error) : error;
}
static long long setting(const char* name, long long usual) {
  const char* text = getenv(name);
  return text ? atoll(text) : usual;
}

// ---- device and context ----
static __thread int depth;
int cuInit(unsigned flags) { return setting("FAKE_CUDA_DEVICES", 1) ? SUCCESS : NO_DEVICE; }
int cuDriverGetVersion(int* version) { *version = 13000; return SUCCESS; }
int cuDeviceGetCount(int* count) { *count = (int)setting("FAKE_CUDA_DEVICES", 1); return SUCCESS; }
int cuDeviceGet(int* device, int number) {
  *device = number;
  return number < setting("FAKE_CUDA_DEVICES", 1) ? SUCCESS : INVALID_DEVICE;
}
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, size, "stand-in"); return SUCCESS; }
int cuDeviceTotalMem_v2(size_t* size, int device) { *size = setting("FAKE_CUDA_MEMORY", 8ll << 30); return SUCCESS; }
int cuDeviceComputeCapability(int* major, int* minor, int device) { *major = 9; *minor = 0; return SUCCESS; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  // The major number of the architecture, which pycuda asks for, and the bytes of the L2 cache.
  *value = attribute == 75 ? 9 : attribute == 38 ? 1 << 16 : 0;
  return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void** context, int device) { *context = &depth; return SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { return SUCCESS; }
int cuCtxPushCurrent_v2(void* context) { ++depth; return SUCCESS; }
int cuCtxPopCurrent_v2(void** context) { if (context) *context = &depth; --depth; return SUCCESS; }
int cuCtxDetach(void* context) { return SUCCESS; }
int cuCtxGetDevice(int* device) { *device = 0; return depth > 0 ? SUCCESS : INVALID_CONTEXT; }
int cuCtxSynchronize(void) { return outcome("synchronize"); }

// ---- memory: its size stands before it ----
enum { HEADER = 256 };
static long long* used(void) { return counter("bytes in use"); }
int cuMemAlloc_v2(Pointer* pointer, size_t size) {
  void* block;
  if (sticky) return sticky;
  if (*used() + (long long)size > setting("FAKE_CUDA_MEMORY", 8ll << 30)) return OUT_OF_MEMORY;
  if (posix_memalign(&block, HEADER, HEADER + size)) return OUT_OF_MEMORY;
  *(size_t*)block = size;
  *used() += size;
  memset((char*)block + HEADER, 0xff, size);
  *pointer = (Pointer)block + HEADER;
  return SUCCESS;
}
int cuMemFree_v2(Pointer pointer) {
  void* block = (char*)pointer - HEADER;
  *used() -= *(size_t*)block;
  free(block);
  return SUCCESS;
}
int cuMemGetInfo_v2(size_t* unused, size_t* total) {
  *total = setting("FAKE_CUDA_MEMORY", 8ll << 30);
  *unused = *total - *used();
  return SUCCESS;
}
static int copied(const char* what, void* target, const void* source, size_t size) {
  const int error = outcome(what);
  if (error) return error;
  memmove(target, source, size);
  return SUCCESS;
}
int cuMemcpyHtoD_v2(Pointer target, const void* source, size_t size) {
  *counter("bytes up") += size;
  return copied("upload", (void*)target, source, size);
}
int cuMemcpyDtoH_v2(void* target, Pointer source, size_t size) {
  *counter("bytes down") += size;
  return copied("download", target, (void*)source, size);
}
int cuMemcpyDtoD_v2(Pointer target, Pointer source, size_t size) {
  *counter("bytes copied") += size;
  return copied("copy", (void*)target, (void*)source, size);
}
int cuMemHostAlloc(void** pointer, size_t size, unsigned flags) {
  *pointer = malloc(size);
  return *pointer ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemFreeHost(void* pointer) { free(pointer); return SUCCESS; }
int cuMemsetD8_v2(Pointer target, unsigned char byte, size_t size) {
  memset((void*)target, byte, size);
  return SUCCESS;
}

// ---- events ----
int cuEventCreate(void** event, unsigned flags) { *event = malloc(sizeof(struct timespec)); return SUCCESS; }
int cuEventDestroy_v2(void* event) { free(event); return SUCCESS; }
int cuEventRecord(void* event, void* stream) { clock_gettime(CLOCK_MONOTONIC, event); return SUCCESS; }
int cuEventSynchronize(void* event) { return outcome("synchronize"); }
int cuEventElapsedTime_v2(float* milliseconds, const struct timespec* begin, const struct timespec* end) {
  *milliseconds = (end->tv_sec - begin->tv_sec) * 1e3 + (end->tv_nsec - begin->tv_nsec) * 1e-6;
  return SUCCESS;
}

// ---- kernels ----
int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  const Elf64_Ehdr* head = image;
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == 3 || options[i] == 5) *(char*)values[i] = 0;  // the buffers for messages
  const int error = outcome("load");
  if (error) return error;
  if (memcmp(image, ELFMAG, SELFMAG) || head->e_machine != EM_X86_64) return WRONG_ARCHITECTURE;
  const size_t size = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
  const int file = memfd_create("kernels", 0);
  char path[64];
  for (size_t done = 0; done < size;) {
    const ssize_t written = write(file, (const char*)image + done, size - done);
    if (written <= 0) return OUT_OF_MEMORY;
    done += written;
  }
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // the file stays open: a later one must not have its name
  return *module ? SUCCESS : INVALID_IMAGE;
}
int cuModuleLoadData(void** module, const void* image) { return cuModuleLoadDataEx(module, image, 0, 0, 0); }
int cuModuleUnload(void* module) { return SUCCESS; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  char symbol[512];
  snprintf(symbol, sizeof symbol, "run_%s", name);
  *function = dlsym(module, symbol);
  return *function ? SUCCESS : NOT_FOUND;
}
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared, void* stream, void** parameters, void** extra) {
  const int error = outcome("launch");
  if (error) return error;
  if (!x || y != 1 || z != 1 || x > 0x7fffffffu || tx * ty * tz > 1024 || !extra) return INVALID_VALUE;
  ((void (*)(void**, long long, long long, long long))function)(extra[1], x, 0, x);  // the buffer after CU_LAUNCH_PARAM_BUFFER_POINTER
  return SUCCESS;
}
int cuGetErrorString(int error, const char** text) {
  switch (error) {
    case OUT_OF_MEMORY: *text = "out of memory"; break;
    case NO_DEVICE: *text = "no CUDA-capable device is detected"; break;
    case WRONG_ARCHITECTURE: *text = "no kernel image is available for execution on the device"; break;
    case ILLEGAL_ADDRESS: *text = "an illegal memory access was encountered"; break;
    case TIMEOUT: *text = "the launch timed out and was terminated"; break;
    case LAUNCH_FAILED: *text = "unspecified launch failure"; break;
    default: *text = "another error"; break;
  }
  return SUCCESS;
}
