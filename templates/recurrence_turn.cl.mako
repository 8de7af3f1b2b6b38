## Blocks of 32 x 32 recurrence bits turned: from words along diagonals to words along rows, and on to words along columns.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg      work-items of a group, a block each (1 32 64 128; 1, 64)
##   staged  blocks pass through local memory (no yes; no, yes)
## ---- end of parameters ----

#include "turn.clh"

void load32(uint* restrict a, global const uint* restrict from) {
%for p in range(0, 32, 4):
  {
    const uint4 v = *(global const uint4*)(from + ${p});
    a[${p}] = v.x; a[${p + 1}] = v.y; a[${p + 2}] = v.z; a[${p + 3}] = v.w;
  }
%endfor
}

void store32(const uint* restrict a, global uint* restrict to) {
%for p in range(0, 32, 4):
  *(global uint4*)(to + ${p}) = (uint4)(a[${p}], a[${p + 1}], a[${p + 2}], a[${p + 3}]);
%endfor
}

// bits: [word of 32 rows][diagonal] -> rows: [word of 32 diagonals][row]. One block a work-item: (block of diagonals,
// block of rows) = global ids. columns_left: columns of the matrix from the tile's first one on; blocks behind them are left out.
kernel void turn_to_rows(global const uint* restrict bits, global uint* restrict rows, const int n_words, const int n_diagonals,
                         const int columns_left, const ulong begin) {
  const int q = get_global_id(0), r = get_global_id(1);
  if (q >= n_diagonals / 32 || r >= n_words || 32 * (q + r) >= columns_left) return;
  uint a[32];
  load32(a, bits + begin + (size_t)r * n_diagonals + 32 * q);
  turn(a);
  store32(a, rows + begin + ((size_t)q * n_words + r) * 32);
}

// rows -> columns: [word of 32 rows][column], columns counted from i0 + k0. Row i = 32 r + b holds column 32 c + t at
// diagonal 32 (c - r) + t - b: b bits further on. own_diagonal: the block of diagonals that begins with the main one, which
// the rows keep to themselves where the matrix is symmetric; -1 otherwise.
%if staged:
// A group has WG blocks of a word of rows; whole lines of memory are moved, and blocks lie 33 words apart in local memory,
// so that work-items meet no other's bank.
#define WG ${wg}
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void turn_to_columns(global const uint* restrict rows, global uint* restrict columns, const int n_words,
                     const int n_diagonals, const int columns_left, const int own_diagonal, const ulong begin) {
  local uint held[33 * (WG + 1)];
  const int lane = get_local_id(0), r = get_global_id(1), blocks = n_diagonals / 32;
  const int c0 = r + (int)get_group_id(0) * WG, q0 = c0 - r;
  if (q0 > blocks || 32 * c0 >= columns_left) return;
  for (int i = lane; i < 32 * (WG + 1); i += WG) {
    const int q = q0 - 1 + i / 32;
    held[i / 32 * 33 + i % 32] = q >= 0 && q < blocks ? rows[begin + ((size_t)q * n_words + r) * 32 + i % 32] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  uint a[32];
%for b in range(32):
  a[${b}] = held[(lane + 1) * 33 + ${b}]${f" << {b} | held[lane * 33 + {b}] >> {32 - b}" if b else ""};
%endfor
  if (q0 + lane == own_diagonal) {
%for b in range(32):
    a[${b}] &= ~(1u << ${b});
%endfor
  }
  turn(a);
  barrier(CLK_LOCAL_MEM_FENCE);
%for b in range(32):
  held[lane * 33 + ${b}] = a[${b}];
%endfor
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = lane; i < 32 * WG; i += WG)
    if (q0 + i / 32 <= blocks) columns[(size_t)r * (n_diagonals + 32 * n_words) + 32 * c0 + i] = held[i / 32 * 33 + i % 32];
}
%else:
kernel void turn_to_columns(global const uint* restrict rows, global uint* restrict columns, const int n_words,
                            const int n_diagonals, const int columns_left, const int own_diagonal, const ulong begin) {
  const int c = get_global_id(0), r = get_global_id(1), blocks = n_diagonals / 32, q = c - r;
  if (r >= n_words || q < 0 || q > blocks || 32 * c >= columns_left) return;
  uint a[32], before[32];
%for p in range(32):
  a[${p}] = 0; before[${p}] = 0;
%endfor
  if (q < blocks) load32(a, rows + begin + ((size_t)q * n_words + r) * 32);
  if (q > 0) load32(before, rows + begin + ((size_t)(q - 1) * n_words + r) * 32);
%for b in range(1, 32):
  a[${b}] = a[${b}] << ${b} | before[${b}] >> ${32 - b};
%endfor
  if (q == own_diagonal) {
%for b in range(32):
    a[${b}] &= ~(1u << ${b});
%endfor
  }
  turn(a);
  store32(a, columns + (size_t)r * (n_diagonals + 32 * n_words) + 32 * c);
}
%endif
