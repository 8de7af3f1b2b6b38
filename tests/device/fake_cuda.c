/* A libcuda that computes nothing: memory is the host's, launches are checked and noted, and contexts are counted.
   "fake" holds what tests look at, and what they have go wrong. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NOT_FOUND = 500 };
struct {
  unsigned long long launches, held, most;   /* bytes */
  unsigned long long grid[6], local_memory;  /* of the last launch */
  unsigned long long arguments[8];           /* its first eight, as many as the kernel has */
  int kernel_error;                          /* what the next wait says, and all calls after it */
  int without_context;                       /* calls that had no context */
  int depth;                                 /* of contexts pushed */
  unsigned long long limit;                  /* bytes that can be had */
  int pools;
  unsigned long long recorded_on, waited_for;  /* streams: of the last event, of the last that another waits for */
  int lost;                                  /* what all calls say after an error of a kernel */
} fake = {.limit = 1ull << 34, .pools = 1};

typedef struct { size_t bytes; } block;
typedef struct { char name[128]; int n_arguments; } function;

#define INSIDE if (fake.lost) return fake.lost; if (!fake.depth) { fake.without_context++; return INVALID_CONTEXT; }

int cuInit(unsigned flags) { return getenv("FAKE_CUDA_NO_GPU") ? 100 : 0; }
int cuDriverGetVersion(int* v) { const char* said = getenv("FAKE_CUDA_VERSION"); *v = said ? atoi(said) : 12040; return 0; }
int cuDeviceGetCount(int* n) { *n = 1; return 0; }
int cuDeviceGetName(char* s, int n, int device) { snprintf(s, n, "NVIDIA H100 80GB HBM3"); return 0; }
int cuDeviceTotalMem_v2(size_t* n, int device) { *n = 85000000000ull; return 0; }
int cuDeviceGetAttribute(int* v, int which, int device) {
  switch (which) {
    case 1: *v = 1024; break;
    case 8: *v = 49152; break;
    case 13: *v = 1980000; break;
    case 16: *v = 132; break;
    case 75: *v = 9; break;
    case 115: *v = fake.pools; break;
    default: *v = 0;
  }
  return 0;
}
int cuDevicePrimaryCtxRetain(void** c, int device) { *c = &fake; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxPushCurrent_v2(void* c) { if (!c) return INVALID_CONTEXT; fake.depth++; return 0; }
int cuCtxPopCurrent_v2(void** c) { if (!fake.depth) return INVALID_CONTEXT; fake.depth--; return 0; }
int cuModuleLoadDataEx(void** m, const char* ptx, unsigned n, void* options, void* values) {
  INSIDE
  *m = strdup(ptx);
  return 0;
}
int cuModuleUnload(void* m) { return 0; }
int cuModuleGetFunction(void** f, void* m, const char* name) {
  INSIDE
  char head[160];
  snprintf(head, sizeof head, ".entry %s(", name);
  const char* at = strstr(m, head);
  if (!at) return NOT_FOUND;
  function* made = calloc(1, sizeof *made);
  snprintf(made->name, sizeof made->name, "%s", name);
  const char* end = strchr(at, ')');
  for (at = strstr(at, ".param"); at && at < end; at = strstr(at + 1, ".param")) made->n_arguments++;
  *f = made;
  return 0;
}
int cuFuncSetAttribute(void* f, int which, int value) { INSIDE return value > 232448 ? INVALID_VALUE : 0; }
int cuLaunchKernel(function* f, unsigned gx, unsigned gy, unsigned gz, unsigned lx, unsigned ly, unsigned lz, unsigned local,
                   void* stream, void** arguments, void** extra) {
  INSIDE
  if (!f || !stream || !gx || !gy || !gz || gy > 65535 || gz > 65535 || lx * ly * lz > 1024 || local > 232448)
    return INVALID_VALUE;
  unsigned sizes[6] = {gx, gy, gz, lx, ly, lz};
  for (int i = 0; i < 6; ++i) fake.grid[i] = sizes[i];
  for (int i = 0; i < f->n_arguments && i < 8; ++i) memcpy(&fake.arguments[i], arguments[i], 8);
  fake.local_memory = local;
  fake.launches++;
  return 0;
}
static int get(unsigned long long* a, size_t n) {
  if (fake.held + n > fake.limit) return OUT_OF_MEMORY;
  block* made = calloc(1, 256 + n);
  if (!made) return OUT_OF_MEMORY;
  made->bytes = n;
  fake.held += n;
  if (fake.held > fake.most) fake.most = fake.held;
  *a = (unsigned long long)made + 256;
  return 0;
}
static int give(unsigned long long a) {
  block* held = (block*)(a - 256);
  fake.held -= held->bytes;
  free(held);
  return 0;
}
int cuMemAlloc_v2(unsigned long long* a, size_t n) { INSIDE return get(a, n); }
int cuMemFree_v2(unsigned long long a) { INSIDE return give(a); }
int cuMemPoolCreate(void** pool, const int* properties) {
  INSIDE
  *pool = &fake;
  return properties[0] == 1 && properties[2] == 1 && properties[3] == 0 ? 0 : INVALID_VALUE;
}
int cuMemPoolDestroy(void* pool) { return 0; }
int cuMemPoolSetAttribute(void* pool, int which, void* value) { return pool == &fake && which == 4 ? 0 : INVALID_VALUE; }
int cuMemAllocFromPoolAsync(unsigned long long* a, size_t n, void* pool, void* stream) {
  INSIDE
  return pool == &fake && stream ? get(a, n) : INVALID_VALUE;
}
int cuMemFreeAsync(unsigned long long a, void* stream) { INSIDE return give(a); }
int cuMemAllocHost_v2(void** p, size_t n) { INSIDE *p = malloc(n); return *p ? 0 : OUT_OF_MEMORY; }
int cuMemFreeHost(void* p) { free(p); return 0; }
int cuPointerGetAttribute(void* value, int which, unsigned long long p) {
  if (which == 1 && p != 8) *(void**)value = &fake;
  else if (which == 9 && p != 8) *(int*)value = 0;
  else return INVALID_VALUE;
  return 0;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t n, void* stream) {
  INSIDE
  memcpy((void*)to, from, n);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t n, void* stream) {
  INSIDE
  memcpy(to, (void*)from, n);
  return 0;
}
static int waited(void) {
  INSIDE
  if (fake.kernel_error) fake.lost = fake.kernel_error;
  return fake.lost;
}
int cuStreamCreate(void** s, unsigned flags) { INSIDE *s = malloc(1); return 0; }
int cuStreamDestroy_v2(void* s) { free(s); return 0; }
int cuStreamWaitEvent(void* s, void* e, unsigned flags) {
  INSIDE
  fake.waited_for = fake.recorded_on;
  return e ? 0 : INVALID_VALUE;
}
int cuEventCreate(void** e, unsigned flags) { INSIDE *e = malloc(1); return 0; }
int cuEventRecord(void* e, void* s) { INSIDE fake.recorded_on = (unsigned long long)s; return e ? 0 : INVALID_VALUE; }
int cuEventSynchronize(void* e) { return waited(); }
int cuEventElapsedTime(float* ms, void* a, void* b) { INSIDE *ms = 0.01f; return 0; }
int cuEventDestroy_v2(void* e) { free(e); return 0; }
int cuGetErrorName(int code, const char** s) {
  *s = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int code, const char** s) { *s = "as the test wants it"; return 0; }
