/* Runs three kernels that pyedmcl exported, without pyedmcl: neighbours, cross-map skill of all pairs, recurrence bits.
 *
 *   pyedmcl kernel knn --E 3 --k 4 --set emit=weights -o DIR
 *   pyedmcl kernel lookup --k 4 --set table_tile=LANES -o DIR          LANES: the value "lanes" of DIR/knn.json
 *   pyedmcl kernel recurrence_bits --dtype float64 --set m=2 -o DIR
 *   cc -IDIR -ffp-contract=off host.c -o host -lOpenCL -lm
 *   ./host DIR PLATFORM series.f32 N_STEPS N_SERIES RADIUS out.bin
 *
 * series.f32 holds floats [row][series] without gaps. out.bin gets the neighbours int [series][row][4], rho
 * float [library][target], and the recurrence matrix of the first series, a byte for each cell. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "knn.h"
#include "lookup.h"
#include "recurrence_bits.h"

#define MOST_PLATFORMS 16
static cl_context context;
static cl_command_queue queue;
static cl_device_id device;

static void need(int good, const char *what) {
  if (!good) {
    fprintf(stderr, "%s failed\n", what);
    exit(1);
  }
}

static void *room(size_t count, size_t size) {
  void *memory = calloc(count, size);
  need(memory != NULL, "memory");
  return memory;
}

static cl_kernel load(const char *folder, const char *name, const char *options) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.cl", folder, name);
  FILE *file = fopen(path, "rb");
  need(file != NULL, path);
  fseek(file, 0, SEEK_END);
  size_t length = (size_t)ftell(file);
  rewind(file);
  char *text = room(length + 1, 1);
  need(fread(text, 1, length, file) == length, path);
  fclose(file);
  cl_program program = clCreateProgramWithSource(context, 1, (const char **)&text, &length, NULL);
  if (clBuildProgram(program, 1, &device, options, NULL, NULL) != CL_SUCCESS) {
    static char log[1 << 16];
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    fputs(log, stderr);
    need(0, name);
  }
  cl_kernel kernel = clCreateKernel(program, name, NULL);
  need(kernel != NULL, name);
  return kernel;
}

static cl_mem on_device(size_t nbytes, void *content) {
  cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | (content ? CL_MEM_COPY_HOST_PTR : 0), nbytes, content, NULL);
  need(memory != NULL, "a buffer");
  return memory;
}

static void *back(cl_mem memory, size_t nbytes) {
  void *content = room(nbytes, 1);
  need(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, nbytes, content, 0, NULL, NULL) == CL_SUCCESS, "a copy");
  return content;
}

static cl_uint place;
static void memory_argument(cl_kernel kernel, cl_mem memory) {
  need(clSetKernelArg(kernel, place++, sizeof memory, &memory) == CL_SUCCESS, "an argument");
}
static void number(cl_kernel kernel, long long value) {
  cl_int narrow = (cl_int)value;
  need(clSetKernelArg(kernel, place++, sizeof narrow, &narrow) == CL_SUCCESS, "an argument");
}
static void wide_number(cl_kernel kernel, long long value) {
  cl_ulong wide = (cl_ulong)value;
  need(clSetKernelArg(kernel, place++, sizeof wide, &wide) == CL_SUCCESS, "an argument");
}
static void launch(cl_kernel kernel, cl_uint axes, const size_t *global_size, const size_t *local_size) {
  need(clEnqueueNDRangeKernel(queue, kernel, axes, NULL, global_size, local_size, 0, NULL, NULL) == CL_SUCCESS, "a launch");
  place = 0;
}

/* A target less its mean over the rows that are scored, and divided by a power of two; summed as pyedmcl sums it. */
static void centre(const float *x, int n_steps, int n_series, int from, float *out, long long stride) {
  float first = x[(size_t)from * n_series], total = 0, low = x[0], high = x[0];
  for (int begin = 0; begin < n_steps; begin += 64) {
    float part = 0;
    for (int t = begin; t < begin + 64 && t < n_steps; ++t) {
      float value = x[(size_t)t * n_series];
      low = fminf(low, value);
      high = fmaxf(high, value);
      if (t >= from) part += value - first;
    }
    total += part;
  }
  float mean = first + total / (float)(n_steps - from), largest = fmaxf(fabsf(low - mean), fabsf(high - mean));
  int power = 0;
  if (largest > 0) frexpf(largest, &power);
  for (int t = 0; t < n_steps; ++t) out[t * stride] = ldexpf(x[(size_t)t * n_series] - mean, -power);
}

int main(int count, char **words) {
  need(count == 8, "usage: host DIR PLATFORM series.f32 N_STEPS N_SERIES RADIUS out.bin:");
  const char *folder = words[1];
  int n = atoi(words[4]), series = atoi(words[5]);
  double radius = atof(words[6]);
  cl_platform_id platforms[MOST_PLATFORMS];
  cl_uint found = 0;
  char name[1024] = "";
  clGetPlatformIDs(MOST_PLATFORMS, platforms, &found);
  for (cl_uint i = 0; i < found && i < MOST_PLATFORMS && !device; ++i) {
    clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL);
    if (strstr(name, words[2])) clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL);
  }
  need(device != NULL, "finding the platform");
  context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  queue = clCreateCommandQueue(context, device, 0, NULL);
  float *x = room((size_t)n * series, sizeof *x);
  FILE *file = fopen(words[3], "rb");
  need(file && fread(x, sizeof *x, (size_t)n * series, file) == (size_t)n * series, "reading the series");
  fclose(file);

  /* Tables of the neighbours and their weights, of all series. Tp is 0, so that j_end is n, and the series are library and
     query alike; with another j_end the library has KNN_GAP from row j_end on. */
  knn_plan s = plan_knn(series, n, n, 0, 0, 8);
  float *padded = room((size_t)s.elements_library, sizeof *padded);
  for (long long i = 0; i < s.elements_library; ++i) padded[i] = (float)KNN_GAP;
  for (int c = 0; c < series; ++c)
    for (int t = 0; t < n; ++t) padded[c * s.library_stride + s.front + t] = x[(size_t)t * series + c];
  cl_mem library = on_device((size_t)s.elements_library * sizeof(float), padded);
  cl_mem rows = on_device((size_t)s.elements_out_row * sizeof(cl_int), NULL);
  cl_mem weights = on_device((size_t)s.elements_out_value * sizeof(float), NULL);
  cl_mem scratch = on_device((size_t)s.elements_scratch * sizeof(cl_int), NULL);
  cl_kernel knn = load(folder, "knn", KNN_OPTIONS);
  for (int i = 0; i < 3; ++i) memory_argument(knn, library);
  long long of_knn[] = {s.library_stride, s.query_stride, s.front, s.n_rows, s.j_begin, s.j_end, s.groups_per_tile,
                        s.groups_per_round, s.exclusion_radius, s.n_tiles, s.first_library, s.task_begin, s.task_end};
  for (size_t i = 0; i < sizeof of_knn / sizeof *of_knn; ++i) number(knn, of_knn[i]);
  memory_argument(knn, rows);
  memory_argument(knn, weights);
  number(knn, s.table_rows);
  wide_number(knn, s.rows_per_slot);
  memory_argument(knn, scratch);
  launch(knn, 1, s.global_size, s.local_size);

  /* Skill of all pairs, from these tables. */
  lookup_plan l = plan_lookup(n, series, series, 3, 1, 0, series);
  float *targets = room((size_t)l.elements_targets, sizeof *targets);
  cl_int *target_of = room((size_t)l.elements_target_of, sizeof *target_of);
  for (int c = 0; c < series; ++c) {
    centre(x + c, n, series, (int)l.t_begin, targets + c, l.target_stride);
    target_of[c] = c;
  }
  cl_mem rho = on_device((size_t)l.elements_rho * sizeof(float), NULL);
  cl_kernel lookup = load(folder, "lookup", LOOKUP_OPTIONS);
  memory_argument(lookup, on_device((size_t)l.elements_targets * sizeof(float), targets));
  memory_argument(lookup, rows);
  memory_argument(lookup, weights);
  memory_argument(lookup, on_device((size_t)l.elements_target_of * sizeof(cl_int), target_of));
  memory_argument(lookup, rho);
  long long of_lookup[] = {l.target_stride, l.column_begin, l.column_end, l.n_rows, l.t_begin, l.t_end, l.Tp,
                           l.n_libraries, l.first_library, l.rho_stride};
  for (size_t i = 0; i < sizeof of_lookup / sizeof *of_lookup; ++i) number(lookup, of_lookup[i]);
  wide_number(lookup, l.table_begin);
  number(lookup, l.table_rows);
  number(lookup, l.n_slices);
  launch(lookup, 1, l.global_size, l.local_size);

  /* Recurrence of the first series' states of two values: all cells in one tile. */
  int points = n - 1, high = (points + 31) / 32;
  recurrence_bits_plan r = plan_recurrence_bits(points, points, 0, -32 * high, high, 64 * high, 0);
  double *down = room((size_t)r.elements_x, sizeof *down), *across = room((size_t)r.elements_y, sizeof *across);
  for (long long i = 0; i < r.elements_x; ++i) down[i] = i < n ? x[(size_t)i * series] : DBL_MAX;
  for (long long i = 0; i < r.elements_y; ++i) across[i] = -DBL_MAX;
  for (int t = 0; t < n; ++t) across[r.y_front + t] = x[(size_t)t * series];
  double limit = radius * radius;
  cl_mem at[] = {on_device((size_t)r.elements_x * sizeof(double), down), on_device((size_t)r.elements_y * sizeof(double), across),
                 on_device(sizeof limit, &limit)};
  cl_mem bits = on_device((size_t)r.elements_bits * sizeof(cl_uint), NULL);
  cl_mem along = on_device((size_t)r.elements_rows * sizeof(cl_uint), NULL);
  cl_kernel recurrence = load(folder, "recurrence_bits", RECURRENCE_BITS_OPTIONS);
  int order[] = {0, 1, 0, 1, 2, 2};
  for (int i = 0; i < 6; ++i) memory_argument(recurrence, at[order[i]]);
  long long of_bits[] = {r.x_stride, r.y_stride, r.y_front, r.i0, r.k0, r.n_words, r.n_diagonals, r.limit_stride, r.theiler,
                         r.i_end, r.n_columns};
  for (size_t i = 0; i < sizeof of_bits / sizeof *of_bits; ++i) number(recurrence, of_bits[i]);
  memory_argument(recurrence, bits);
  memory_argument(recurrence, along);
  launch(recurrence, 2, r.global_size, r.local_size);

  cl_int *found_rows = back(rows, (size_t)s.elements_out_row * sizeof(cl_int));
  cl_uint *words_of = back(bits, (size_t)r.elements_bits * sizeof(cl_uint));
  file = fopen(words[7], "wb");
  need(file != NULL, "writing the results");
  fwrite(found_rows, sizeof(cl_int), (size_t)s.elements_out_row, file);
  fwrite(back(rho, (size_t)l.elements_rho * sizeof(float)), sizeof(float), (size_t)l.elements_rho, file);
  for (int i = 0; i < points; ++i)
    for (int j = 0; j < points; ++j)
      fputc((int)(words_of[(i / 32) * r.n_diagonals + (j - i - r.k0)] >> (i % 32) & 1), file);
  need(fclose(file) == 0, "writing the results");
  return 0;
}
