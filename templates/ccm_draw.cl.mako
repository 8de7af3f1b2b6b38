## Random sub-libraries: sixteen samples at a time, whose memberships are the bits of one word for each library row.
##
##   ccm_draw  a word for each row that may be drawn: bit s says whether the row is a member of sample s
##   ccm_list  the members of samples as ascending lists of rows, where a list is shorter than a scan
##
## Selection sampling (Knuth, TAOCP 2, 3.4.2, algorithm S): where `unfilled` members are still to be drawn from the n - p rows
## that are left, row p is one with probability unfilled / (n - p). The random numbers are philox4x32-10 (Salmon et al., SC 2011),
## whose counters are (p / 4, sample, library, target): each row of each sample has its own, in whatever order they are drawn.
## Integers only: the samples are the same on every device.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes  samples of a work-item (1 16; 16, 1)
##   wg     work-items of a group (1 16 32 64 128; 1, 64)
## ---- end of parameters ----
#define COUNT ${"uint" if lanes == 1 else f"uint{lanes}"}
#define WG ${wg}
#include "ccm.clh"
#include "philox.clh"

%if lanes > 1:
// All lanes or-ed together.
inline ushort bits_of(uint16 v) {
  const uint8 h = v.lo | v.hi;
  const uint4 q = h.lo | h.hi;
  const uint2 d = q.lo | q.hi;
  return (ushort)(d.x | d.y);
}
%endif

// columns: see ccm.clh; rows_of: lists of rows to draw from, ascending. members: [column][stride], a word for each row; that of
// row n_rows, which stands for no row, is 0.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void ccm_draw(global const int* restrict columns, global const int* restrict rows_of, const int n_columns, const int n_rows,
              const int stride, const int most_choices, global ushort* restrict members) {
%if lanes > 1:
  if (get_global_id(0) >= n_columns) return;
  const int at = get_global_id(0);
  const uint16 lane = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const uint16 bit = (uint16)(1) << lane;
%else:
  const int at = min((int)get_global_id(0) / SAMPLES, n_columns - 1);
  const uint lane = get_local_id(0) % SAMPLES;
  local ushort drawn[WG];
%endif
  global const int* restrict column = columns + at * COLUMN_INTS;
  global const int* restrict rows = rows_of + COLUMN_ROWS(column);
  global ushort* restrict words = members + (size_t)at * stride;
  const int n = COLUMN_CHOICES(column);
  COUNT unfilled = (COUNT)(COLUMN_SIZE(column));  // members still to be drawn
%if lanes > 1:
  words[n_rows] = 0;
  // A work-item draws for all sixteen samples, four rows from each set of random numbers.
  for (int p = 0; p < n; p += 4) {
    uint16 c0 = (uint16)(p / 4), c1 = (uint16)(COLUMN_SAMPLE(column)) + lane;
    uint16 c2 = (uint16)(COLUMN_LIBRARY(column)), c3 = (uint16)(COLUMN_TARGET(column));
    philox(&c0, &c1, &c2, &c3, COLUMN_KEY0(column), COLUMN_KEY1(column));
%for i in range(4):
    if (p + ${i} < n) {
      const int16 take = mul_hi(c${i}, (uint16)(n - p - ${i})) < unfilled;
      unfilled += as_uint16(take);
      words[rows[p + ${i}]] = bits_of(as_uint16(take) & bit);
    }
%endfor
  }
%else:
  if (lane == 0) words[n_rows] = 0;
  // A work-item draws sixteen rows for its sample; then it gathers the bits that all samples have for one row:
  //
  //   drawn[sample], bit row   ->   words[row], bit sample
  for (int begin = 0; begin < most_choices; begin += SAMPLES) {
    uint bits = 0;
    for (int p = begin; p < begin + SAMPLES; p += 4) {
      uint c0 = p / 4, c1 = COLUMN_SAMPLE(column) + lane, c2 = COLUMN_LIBRARY(column), c3 = COLUMN_TARGET(column);
      philox(&c0, &c1, &c2, &c3, COLUMN_KEY0(column), COLUMN_KEY1(column));
%for i in range(4):
      if (p + ${i} < n && mul_hi(c${i}, (uint)(n - p - ${i})) < unfilled) {
        --unfilled;
        bits |= 1u << (p - begin + ${i});
      }
%endfor
    }
    drawn[get_local_id(0)] = (ushort)bits;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint word = 0;
    for (int s = 0; s < SAMPLES; ++s) word |= ((drawn[get_local_id(0) - lane + s] >> lane) & 1u) << s;
    if (begin + (int)lane < n) words[rows[begin + lane]] = (ushort)word;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
%endif
}

// lists: from COLUMN_LISTS on, COLUMN_SIZE ascending rows for each of the column's samples. A work-item per sample.
kernel void ccm_list(global const int* restrict columns, global const int* restrict rows_of, const int n_columns,
                     const int stride, global const ushort* restrict members, global int* restrict lists) {
  const int at = get_global_id(0) / SAMPLES, lane = get_global_id(0) % SAMPLES;
  if (at >= n_columns) return;
  global const int* restrict column = columns + at * COLUMN_INTS;
  if (COLUMN_LISTS(column) < 0 || lane >= COLUMN_SAMPLES(column)) return;
  global const int* restrict rows = rows_of + COLUMN_ROWS(column);
  global const ushort* restrict words = members + (size_t)at * stride;
  const int n = COLUMN_CHOICES(column), size = COLUMN_SIZE(column);
  global int* restrict list = lists + (size_t)COLUMN_LISTS(column) + (size_t)lane * size;
  int listed = 0;
  for (int p = 0; p < n && listed < size; ++p) {
    const int row = rows[p];
    if ((words[row] >> lane) & 1) list[listed++] = row;
  }
}
