## Recurrence bits transposed: from words along diagonals to words along rows, and from these to words along columns, so that
## lines in all three directions are runs of bits in successive words.
##
## recurrence_bits leaves a tile as blocks of 32 rows and 32 diagonals. The column of a cell is its row plus its diagonal:
##
##      diagonals   0 1 2 3          a block in the matrix:    columns 0 1 2 3 4 5 6
##      row 0       a b c d                           row 0            a b c d
##      row 1       e f g h                           row 1              e f g h
##      row 2       i j k l                           row 2                i j k l
##      row 3       m n o p                           row 3                  m n o p
##
##   1. rows: each block is transposed (transpose.clh). A word then holds 32 diagonals of one row: "a b c d".
##   2. columns: a block of 32 rows and 32 columns takes its row b from two successive words of that row, of diagonals q - 1
##      and q: those bits that belong to its columns, which lie b bits further on. Transposed, words hold 32 rows of a column.
##
## Parameters
##   staged   blocks pass through local memory, so that neighbouring work-items read and write neighbouring words (GPUs);
##            else a work-item reads and writes a block of its own (processors)
##   wg       work-items of a group, where staged: each transposes a block
##
## Layouts, all of 32-bit words, in which i and j are counted from the tile's first row and column:
##   bits     [word of 32 rows][diagonal]
##   rows     [word of 32 diagonals][row]
##   columns  [word of 32 rows][column]; a tile reaches n_diagonals + 32 n_words columns
## Radii lie one behind the other in bits and rows; `begin` is the first word of the one at work. columns_left: columns of the
## matrix from the tile's first one on. Blocks behind them were not written, are not read and not made.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg      work-items of a group, a block each (1 32 64 128; 1, 64)
##   staged  blocks pass through local memory (no yes; no, yes)
## ---- end of parameters ----

#include "transpose.clh"

// ---- A block of 32 words between memory and registers

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

// ---- 1. Rows. A work-item makes a block; its global ids are the blocks' numbers along diagonals and rows.

kernel void transpose_to_rows(global const uint* restrict bits, global uint* restrict rows, const int n_words,
                              const int n_diagonals, const int columns_left, const ulong begin) {
  const int q = get_global_id(0), r = get_global_id(1);
  if (q >= n_diagonals / 32 || r >= n_words || 32 * (q + r) >= columns_left) return;
  uint a[32];
  load32(a, bits + begin + (size_t)r * n_diagonals + 32 * q);
  transpose32(a);
  store32(a, rows + begin + ((size_t)q * n_words + r) * 32);
}

// ---- 2. Columns. The block of columns c and rows r takes its row b, bit t from the diagonal 32 q + t - b, q = c - r.
//
// own_diagonal: where the matrix is symmetric, the block of diagonals that begins with the main one; -1 otherwise. Below the
// main diagonal a column goes on as a row, so the cells of the main diagonal stay with the rows and are cleared here.

<%def name="without_main_diagonal(block)">
  if (${block} == own_diagonal) {
%for b in range(32):
    a[${b}] &= ~(1u << ${b});
%endfor
  }
</%def>
%if staged:
// A group makes WG blocks of the word of rows r, and reads one more, before them. In local memory blocks lie 33 words apart:
// word b of 32 neighbouring blocks is then in 32 different banks.
#define WG ${wg}
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void transpose_to_columns(global const uint* restrict rows, global uint* restrict columns, const int n_words,
                          const int n_diagonals, const int columns_left, const int own_diagonal, const ulong begin) {
  local uint held[33 * (WG + 1)];
  const int lane = get_local_id(0), r = get_global_id(1), blocks = n_diagonals / 32;
  const int c0 = r + (int)get_group_id(0) * WG, q0 = c0 - r;
  if (q0 > blocks || 32 * c0 >= columns_left) return;
  // Global to local memory: the blocks q0 - 1, q0, ..., q0 + WG - 1 of the word of rows r; none is a block of zeros.
  for (int i = lane; i < 32 * (WG + 1); i += WG) {
    const int q = q0 - 1 + i / 32;
    held[i / 32 * 33 + i % 32] = q >= 0 && q < blocks ? rows[begin + ((size_t)q * n_words + r) * 32 + i % 32] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // Local memory to registers: row b of a block of columns, from two successive words of that row.
  uint a[32];
%for b in range(32):
  a[${b}] = held[(lane + 1) * 33 + ${b}]${f" << {b} | held[lane * 33 + {b}] >> {32 - b}" if b else ""};
%endfor
${without_main_diagonal("q0 + lane")}
  transpose32(a);
  // And back, block by block.
  barrier(CLK_LOCAL_MEM_FENCE);
%for b in range(32):
  held[lane * 33 + ${b}] = a[${b}];
%endfor
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = lane; i < 32 * WG; i += WG)
    if (q0 + i / 32 <= blocks)
      columns[(size_t)r * (n_diagonals + 32 * n_words) + 32 * c0 + i] = held[i / 32 * 33 + i % 32];
}
%else:
kernel void transpose_to_columns(global const uint* restrict rows, global uint* restrict columns, const int n_words,
                                 const int n_diagonals, const int columns_left, const int own_diagonal,
                                 const ulong begin) {
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
${without_main_diagonal("q")}
  transpose32(a);
  store32(a, columns + (size_t)r * (n_diagonals + 32 * n_words) + 32 * c);
}
%endif
